# A real Slurm of two nodes on this machine: mpiexec inside an allocation, srun with PMI and PMIx, srun without.
skip() {
    echo "skip: $*"
    exit 77
}
[ "$(id -u)" -eq 0 ] || skip "daemons of Slurm need root"
for program in munged slurmctld slurmd srun salloc; do
    command -v "$program" >/dev/null || skip "$program is not installed (Debian: slurm-wlm, munge)"
done
place="$TMPDIR/slurm"
mkdir -p "$place/state" "$place/n1" "$place/n2"
export SLURM_CONF="$place/conf"
down() {
    status=$?
    for file in n1.pid n2.pid control.pid munged.pid; do
        [ -s "$place/$file" ] && kill "$(cat "$place/$file")" 2>/dev/null
    done
    for file in n1.pid n2.pid control.pid munged.pid; do
        [ -s "$place/$file" ] && tail --pid="$(cat "$place/$file" 2>/dev/null || echo 1073741824)" -f /dev/null
    done
    rm -rf "$place"
    exit "$status"
}
trap down EXIT
(umask 077 && head -c 128 /dev/urandom >"$place/key")
munged --force --key-file="$place/key" --socket="$place/socket" --pid-file="$place/munged.pid" \
    --log-file="$place/munged.log" --seed-file="$place/seed"
port=$((20000 + $$ % 20000))
cat >"$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$place/socket
SlurmUser=root
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/%n
SlurmctldPidFile=$place/control.pid
SlurmdPidFile=$place/%n.pid
SlurmctldLogFile=$place/control.log
SlurmdLogFile=$place/%n.log
SlurmdDebug=verbose
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
NodeName=n1 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=8 State=UNKNOWN
NodeName=n2 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
slurmctld -c
slurmd -N n1 -c
slurmd -N n2 -c
for _ in $(seq 150); do
    [ "$(sinfo -h -N -o %T 2>/dev/null | grep -c idle)" -eq 2 ] && break
    sleep 0.2
done
[ "$(sinfo -h -N -o %T 2>/dev/null | grep -c idle)" -eq 2 ] || skip "slurmctld and slurmd do not start here: $(tail -n 1 "$place"/*.log | tr '\n' ' ')"
mpiexec="$PREFIX/bin/mpiexec"
out="$TMPDIR/out"
err="$TMPDIR/err"

# Inside an allocation nothing needs to be said: all its tasks, on its nodes, with input, output and codes.
echo hello | salloc -Q -N2 -n4 "$mpiexec" sh -c 'echo $PARNASS_RANK $PARNASS_LOCAL_RANK $(wc -l)' >"$out"
sort "$out" | diff <(printf '%s\n' "0 0 1" "1 1 0" "2 2 0" "3 0 0") - ||
    sort "$out" | diff <(printf '%s\n' "0 0 1" "1 1 0" "2 0 0" "3 1 0") -
status=0
salloc -Q -N2 -n2 "$mpiexec" sh -c '[ $PARNASS_RANK = 1 ] && exit 9; exec sleep 16180' 2>"$err" || status=$?
[ "$status" -eq 9 ] && grep -q 'rank 1 (sh, process [0-9]* on n2) exited with code 9; ending 1 other rank' "$err"

# srun with PMI starts MPI programs, with either version; without, it is told how.
for version in 2 1; do
    PMI_VERSION=$version srun --mpi=pmi2 -N1 -n3 "$PROGRAMS/ring" 10 64 >"$out"
    grep -q 'ring: ok' "$out"
    PMI_VERSION=$version srun --mpi=pmi2 -N1 -n1 "$PROGRAMS/hello" | grep -q 'Hello from rank 0 of 1'
done
grep -q 'client PMI1 init, version=2.0' "$place/n1.log"
# Where nothing is said it is version 2; over two nodes too, between which there is TCP.
rm "$place"/n?.log
srun --mpi=pmi2 -N2 -n4 "$PROGRAMS/ring" 10 100000 >"$out"
grep -q 'ring: ok' "$out"
for node in n1 n2; do
    grep -q 'client PMI1 init, version=2.0' "$place/$node.log"
done
PMI_VERSION=3 srun --mpi=pmi2 -N1 -n2 "$PROGRAMS/hello" >"$out" 2>&1 && exit 1
grep -q "PMI_VERSION is '3': set it to 1 or 2" "$out"
status=0
srun --mpi=pmi2 -N1 -n2 "$PROGRAMS/die" abort >"$out" 2>&1 || status=$?
[ "$status" -ne 0 ]
if srun --mpi=pmix -N1 -n1 true 2>"$err"; then
    srun --mpi=pmix -N1 -n3 "$PROGRAMS/ring" 10 64 >"$out"
    grep -q 'ring: ok' "$out"
    status=0
    srun --mpi=pmix -N1 -n2 "$PROGRAMS/die" abort >"$out" 2>&1 || status=$?
    [ "$status" -eq 42 ]
else
    echo "slurm: without srun --mpi=pmix: $(head -n 1 "$err")"
fi
srun -N1 -n2 "$PROGRAMS/hello" >"$out" 2>&1 && exit 1
grep -q "Slurm's srun without PMI-2 has started it" "$out"
grep -q 'srun --mpi=pmi2' "$out"
rm "$out" "$err"
