# mpiexec dies without a chance to clean up; the harness then finds what is left.
for round in 1 2 3; do
    "$PREFIX/bin/mpiexec" -n 4 "$PROGRAMS/hello" sleep 100000 >"$TMPDIR/out" &
    launcher=$!
    for _ in $(seq 500); do
        [ "$(grep -c Hello "$TMPDIR/out")" -eq 4 ] && break
        sleep 0.02
    done
    [ "$(grep -c Hello "$TMPDIR/out")" -eq 4 ] || { echo "the ranks did not start"; exit 1; }
    kill -9 "$launcher"
    status=0
    wait "$launcher" || status=$?
    [ "$status" -eq 137 ] || { echo "mpiexec ended with $status"; exit 1; }
done
rm "$TMPDIR/out"
