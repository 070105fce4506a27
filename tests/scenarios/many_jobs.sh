# Many jobs in a row: each works, and in the end no descriptor, file or process has piled up.
count=200
[ -z "$FULL" ] || count=1000
for job in $(seq "$count"); do
    "$PREFIX/bin/mpiexec" -n 2 "$PROGRAMS/ring" 3 64 >"$TMPDIR/out" || { echo "job $job failed"; cat "$TMPDIR/out"; exit 1; }
done
grep -q "ring: ok" "$TMPDIR/out"
rm "$TMPDIR/out"
