# A reader that goes away: mpiexec ends, and does not spin. A reader that is slow: nothing is lost.
set +e
timeout 60 "$PREFIX/bin/mpiexec" -n 3 "$PROGRAMS/streams" flood | head -n 1000 >"$TMPDIR/out"
status=${PIPESTATUS[0]}
set -e
[ "$(wc -l <"$TMPDIR/out")" -eq 1000 ] || { echo "the first lines are missing"; exit 1; }
[ "$status" -ne 124 ] || { echo "mpiexec went on after its reader had gone"; exit 1; }
lines=$("$PREFIX/bin/mpiexec" -n 2 "$PROGRAMS/streams" lines 5000 | { sleep 1; wc -l; })
[ "$lines" -eq 10000 ] || { echo "$lines lines of 10000"; exit 1; }
rm "$TMPDIR/out"
