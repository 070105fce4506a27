# A signal to mpiexec ends the ranks and then mpiexec, with the signal's exit code.
for signal in INT TERM; do
    # A background job of a script ignores SIGINT unless it is told otherwise.
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$PREFIX/bin/mpiexec" -n 3 "$PROGRAMS/hello" sleep 100000 >"$TMPDIR/out" &
    launcher=$!
    for _ in $(seq 500); do
        [ "$(grep -c Hello "$TMPDIR/out")" -eq 3 ] && break
        sleep 0.02
    done
    kill -s "$signal" "$launcher"
    status=0
    wait "$launcher" || status=$?
    case "$signal,$status" in
    INT,130 | TERM,143) ;;
    *) echo "SIG$signal: mpiexec ended with $status"; exit 1 ;;
    esac
done
rm "$TMPDIR/out"
