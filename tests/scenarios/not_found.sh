status=0
"$PREFIX/bin/mpiexec" -n 2 ./there-is-no-such-program 2>"$TMPDIR/err" || status=$?
[ "$status" -eq 127 ] || { echo "exit status $status"; cat "$TMPDIR/err"; exit 1; }
grep -q "there-is-no-such-program" "$TMPDIR/err"
rm "$TMPDIR/err"
