# Ranks that use libfabric's provider for shared memory are killed, by any means: of the files that it keeps for them none is left,
# and none of others is touched.
/sbin/ldconfig -p | grep 'libfabric\.so\.1' >/dev/null || { echo "skip: libfabric1 is not installed"; exit 77; }
out="$TMPDIR/out"
options="--starter local --host a:1,b:1 --tunable network=ofi --tunable provider=shm"
bystander="/dev/shm/$$:0:0"
trap 'rm -f "$bystander" "$out"' EXIT
: >"$bystander"

# A job of two ranks that say who they are, after so much has been put before the command.
start() {
    "$PREFIX/bin/mpiexec" $options "$@" -n 2 sh -c 'echo "shell $$"; "$0" 1000000; :' "$PROGRAMS/ulfm_work" >"$out" 2>&1 &
    launcher=$!
    for _ in $(seq 1500); do
        [ "$(grep -c 'is process' "$out")" -eq 2 ] && break
        sleep 0.02
    done
    first=$(sed -n 's/^rank 0 is process //p' "$out")
    second=$(sed -n 's/^rank 1 is process //p' "$out")
    for process in "$first" "$second"; do
        [ -e "/dev/shm/$process:0:0" ] || { echo "process $process has no file:"; cat "$out"; exit 1; }
    done
}
nothing_left() {
    for process in "$first" "$second"; do
        for _ in $(seq 500); do [ -d "/proc/$process" ] || break; sleep 0.02; done
        for _ in $(seq 100); do [ -e "/dev/shm/$process:0:0" ] || break; sleep 0.02; done
        [ ! -e "/dev/shm/$process:0:0" ] || { echo "$1: the file of process $process is left"; rm "/dev/shm/$process:0:0"; exit 1; }
    done
    [ -e "$bystander" ] || { echo "$1: the file of a process that is none of the job's is gone"; exit 1; }
}
parent_of() { sed 's/.*) . //; s/ .*//' "/proc/$1/stat"; }

start
kill -9 "$second"
wait "$launcher" && { echo "a job that lost a rank ended well"; exit 1; }
nothing_left "a rank was killed"

# The others go on: the file goes with its rank, and not with the job.
start --survive
kill -9 "$second"
for _ in $(seq 500); do [ -e "/dev/shm/$second:0:0" ] || break; sleep 0.02; done
[ ! -e "/dev/shm/$second:0:0" ] || { echo "the file of a rank that died is left while the others go on"; exit 1; }
[ -e "/dev/shm/$first:0:0" ] || { echo "the file of a rank that lives is gone"; exit 1; }
kill -9 "$first"
wait "$launcher" || true
nothing_left "all ranks were killed"

start
kill -9 "$launcher"
wait "$launcher" 2>/dev/null || true
nothing_left "mpiexec was killed"

# The guardian of a node, above the shell that is above the rank.
start
kill -9 "$(parent_of "$(parent_of "$second")")"
wait "$launcher" 2>/dev/null || true
nothing_left "an agent's guardian was killed"
