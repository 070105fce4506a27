# Jobs that know nothing of each other meet by the name of a service: two jobs, a program without a launcher, and one that is killed.
service="connect scenario $$"
"$PREFIX/bin/mpiexec" -n 2 "$PROGRAMS/connect" server "$service" 4 >"$TMPDIR/server" & server=$!
"$PREFIX/bin/mpiexec" -n 3 "$PROGRAMS/connect" client "$service" 2 >"$TMPDIR/client"
"$PREFIX/bin/mpiexec" --encrypt -n 1 "$PROGRAMS/connect" client "$service" 1 >"$TMPDIR/encrypted"
"$PROGRAMS/connect" client "$service" 1 >"$TMPDIR/alone"
wait "$server"
grep -q "connect: ok" "$TMPDIR/server"
grep -q "connect: ok" "$TMPDIR/client"
grep -q "connect: ok" "$TMPDIR/encrypted"
grep -q "connect: ok" "$TMPDIR/alone"

# A job that dies ends the one that is connected with it, which says why.
"$PREFIX/bin/mpiexec" -n 2 "$PROGRAMS/connect" stays "$service" server >"$TMPDIR/server" 2>&1 & server=$!
code=0
"$PREFIX/bin/mpiexec" -n 2 "$PROGRAMS/connect" stays "$service" client >"$TMPDIR/client" 2>&1 || code=$?
[ "$code" = 1 ]
grep -q "another world that this one is connected with" "$TMPDIR/client"
code=0
wait "$server" || code=$?
[ "$code" = 134 ]
rm "$TMPDIR/server" "$TMPDIR/client" "$TMPDIR/encrypted" "$TMPDIR/alone"
