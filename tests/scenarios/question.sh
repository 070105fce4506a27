# SIGQUIT to mpiexec asks what the ranks do; they go on. SIGTERM ends a job that hangs, and says the same.
# A background job of a script ignores SIGQUIT unless it is told otherwise.
python3 -c 'import os, signal, sys
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$PREFIX/bin/mpiexec" -n 3 "$PROGRAMS/hang" tags 2>"$TMPDIR/said" &
launcher=$!
hangs='ranks 1, 2: waiting in MPI_Barrier for rank 0, called by tags at hang.c:'
# It listens once it has blocked the signal, number 3, which it reads from a descriptor: before that it would die of it.
for _ in $(seq 100); do
    blocked=$(sed -n 's/^SigBlk:[[:space:]]*//p' "/proc/$launcher/status")
    [ $((0x$blocked & 4)) -eq 0 ] || break
    sleep 0.1
done
for _ in $(seq 100); do
    grep -q "$hangs" "$TMPDIR/said" && break
    sleep 0.1
    kill -s QUIT "$launcher"
done
grep -q "$hangs" "$TMPDIR/said" || { cat "$TMPDIR/said"; echo "mpiexec has not said that the job hangs"; exit 1; }
sleep 2 # What was asked last is answered.
answers=$(grep -c "$hangs" "$TMPDIR/said")
kill -s TERM "$launcher"
status=0
wait "$launcher" || status=$?
[ "$status" -eq 143 ] || { cat "$TMPDIR/said"; echo "mpiexec ended with $status"; exit 1; }
sed -n '/ended by SIGTERM/,$p' "$TMPDIR/said" | grep -q "$hangs" || { cat "$TMPDIR/said"; echo "no answer to SIGTERM"; exit 1; }
[ "$(grep -c "$hangs" "$TMPDIR/said")" -eq $((answers + 1)) ] || { cat "$TMPDIR/said"; exit 1; }
rm "$TMPDIR/said"

# Where the kernel lets nobody look at stacks, it is told without the names of calls.
status=0
"$PROGRAMS/deny_process_vm" "$PREFIX/bin/mpiexec" --timeout 1.5 -n 3 "$PROGRAMS/hang" tags 2>"$TMPDIR/said" || status=$?
[ "$status" -eq 124 ] && grep -q 'rank 0: waiting in MPI for rank 1; receives posted: from rank 1 with tag 7' "$TMPDIR/said" || {
    cat "$TMPDIR/said"
    echo "mpiexec ended with $status"
    exit 1
}
rm "$TMPDIR/said"
