# Three jobs at once, of different sizes, several times over.
for round in 1 2 3; do
    "$PREFIX/bin/mpiexec" -n 3 "$PROGRAMS/collectives" >"$TMPDIR/a" & a=$!
    "$PREFIX/bin/mpiexec" -n 2 "$PROGRAMS/pt2pt" >"$TMPDIR/b" & b=$!
    "$PREFIX/bin/mpiexec" -n 4 "$PROGRAMS/communicators" >"$TMPDIR/c" & c=$!
    wait "$a"
    wait "$b"
    wait "$c"
    grep -q "collectives: ok" "$TMPDIR/a"
    grep -q "pt2pt: ok" "$TMPDIR/b"
    grep -q "communicators: ok" "$TMPDIR/c"
done
rm "$TMPDIR"/[abc]
