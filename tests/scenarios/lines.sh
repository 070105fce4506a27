# Each rank writes its lines in many small pieces; every line must come out whole.
"$PREFIX/bin/mpiexec" -n 4 "$PROGRAMS/streams" lines 300 >"$TMPDIR/out"
[ "$(wc -l <"$TMPDIR/out")" -eq 1200 ] || { echo "$(wc -l <"$TMPDIR/out") lines of 1200"; exit 1; }
if grep -vE '^\[rank ([0-3]) line [0-9]+ (a{80}|b{80}|c{80}|d{80})\]$' "$TMPDIR/out" | head -n 5 | grep .; then
    echo "these lines are torn"
    exit 1
fi
rm "$TMPDIR/out"
