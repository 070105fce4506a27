# A file per rank, and nothing on mpiexec's own output.
said=$("$PREFIX/bin/mpiexec" --output "$TMPDIR/reports" -n 3 "$PROGRAMS/hello")
[ -z "$said" ] || { echo "unexpected: $said"; exit 1; }
for rank in 0 1 2; do
    [ "$(cat "$TMPDIR"/reports/* | grep -c "rank $rank of 3")" -eq 1 ] || { echo "rank $rank is missing"; ls "$TMPDIR/reports"; exit 1; }
done
[ "$(grep -l "Hello" "$TMPDIR"/reports/* | wc -l)" -eq 3 ] || { ls "$TMPDIR/reports"; exit 1; }
rm -r "$TMPDIR/reports"
