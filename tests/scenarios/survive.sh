#!/bin/bash
# Ranks and agents are killed from outside, while the others work and go on; nothing is left behind, whoever is killed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mpiexec="$PREFIX/bin/mpiexec"

# Until so many ranks have said who they are.
wait_for() {
    for _ in $(seq 1500); do
        [ "$(grep -c 'is process' out)" -ge "$1" ] && return
        sleep 0.02
    done
    echo "the ranks do not start:"; cat out; exit 1
}
process_of() { sed -n "s/^rank $1 is process //p" out; }
# Ends well, with so many ranks left.
ends_with() {
    wait "$job" || { echo "exit code $?:"; cat out; exit 1; }
    grep -q "ulfm_work: ok with $1 ranks, mended at least once" out || { echo "not $1 ranks:"; cat out; exit 1; }
}

# Ranks, one after the other, on one host; in a mailbox lane that several senders share, too.
for ranks in 4 12; do
    "$mpiexec" --survive -n "$ranks" "$PROGRAMS/ulfm_work" 2000 > out 2>&1 & job=$!
    wait_for "$ranks"
    for victim in 2 0; do
        kill -9 "$(process_of $victim)"
        sleep 0.1
    done
    ends_with $((ranks - 2))
    [ "$(grep -c 'was killed by signal 9' out)" -eq 2 ]
done

# Two at once, between hosts.
"$mpiexec" --survive --starter local --host a:2,b:2,c:2 -n 6 "$PROGRAMS/ulfm_work" 1000 > out 2>&1 & job=$!
wait_for 6
kill -9 "$(process_of 1)" "$(process_of 4)"
ends_with 4

# An agent, and its ranks with it.
"$mpiexec" --survive --starter local --host a:2,b:2,c:1 -n 5 "$PROGRAMS/ulfm_work" 1000 > out 2>&1 & job=$!
wait_for 5
victim=$(process_of 3)
kill -9 "$(sed 's/.*) . //; s/ .*//' "/proc/$victim/stat")"
ends_with 3
grep -q 'the agent on b is lost: .*; going on with 3 ranks' out

# A survivor that fails itself gives the exit code; MPI_Abort ends the job as ever.
"$mpiexec" --survive -n 3 sh -c '[ $PARNASS_RANK = 1 ] && exit 7; sleep 0.2' > out 2>&1 && { echo "a rank that never called MPI_Init was let go"; exit 1; }
grep -q 'rank 1 .* exited with code 7; ending 2 other ranks' out

# mpiexec itself: everything ends with it.
"$mpiexec" --survive -n 3 "$PROGRAMS/ulfm_work" 1000000 > out 2>&1 & job=$!
wait_for 3
victims="$(process_of 0) $(process_of 1) $(process_of 2)"
kill -9 "$job"
wait "$job" 2>/dev/null || true
for victim in $victims; do
    for _ in $(seq 500); do [ -d "/proc/$victim" ] || break; sleep 0.02; done
    [ ! -d "/proc/$victim" ] || { echo "process $victim is left"; exit 1; }
done
echo "survive: ok"
