#!/bin/bash
# Libfabric: long messages are read out of their sender's memory where the tunable says so, and are what they were; a rank that is
# killed in the middle of them ends the job, or is survived, and nothing hangs.
set -eu
cd "$TMPDIR"
mpiexec="$PREFIX/bin/mpiexec"
ofi() {
    "$mpiexec" --starter local --host a:1,b:1 -n 2 --tunable network=ofi "$@"
}

# counter NAME: of the whole job.
counter() {
    python3 -c 'import json, sys; print(json.load(open("stats.json"))["job"]["counters"][sys.argv[1]])' "$1"
}

for provider in tcp shm; do
    for rma in auto on off; do
        ofi --stats=stats.json --tunable provider=$provider --tunable rma=$rma "$PROGRAMS/long_messages" 10 9000001 > out
        grep -q 'long_messages: ok' out
        read_bytes=$(counter network_read_bytes)
        expected=180000020
        # Over shared memory nothing is read: libfabric would hold a lock that outlives a rank that is killed.
        case $provider-$rma in *-off | shm-*) expected=0 ;; esac
        echo "$provider rma=$rma: $read_bytes bytes read, $(counter network_sent_bytes) sent"
        [ "$read_bytes" -eq $expected ]
        [ "$(counter network_failed_reads)" -eq 0 ]
        [ "$(counter network_connections)" -eq 2 ]
        if [ $expected -eq 0 ]; then [ "$(counter network_sent_bytes)" -gt 180000020 ]; else [ "$(counter network_sent_bytes)" -lt 1000000 ]; fi
    done
    # What is encrypted never travels in clear.
    ofi --encrypt --stats=stats.json --tunable provider=$provider --tunable rma=on "$PROGRAMS/long_messages" 3 9000001 > out
    grep -q 'long_messages: ok' out
    [ "$(counter network_read_bytes)" -eq 0 ]
    # Short ones go in packets.
    ofi --stats=stats.json --tunable provider=$provider --tunable rma=on "$PROGRAMS/long_messages" 10 60000 > out
    [ "$(counter network_read_bytes)" -eq 0 ]
done
status=0
ofi --tunable rma=perhaps "$PROGRAMS/long_messages" 1 10 > out 2> err || status=$?
[ "$status" -ne 0 ]
grep -q "'perhaps': it may be on, off or auto" err

# killed OPTION...: the process of rank 1 is killed when messages are under way.
killed() {
    rm -f out err
    ofi "$@" > out 2> err & job=$!
    for _ in $(seq 600); do
        grep -q 'rank 1 is process' out 2>/dev/null && break
        sleep 0.1
    done
    sleep "0.0$((RANDOM % 10))"
    kill -9 "$(sed -n 's/^rank 1 is process //p' out)"
    status=0
    wait "$job" || status=$?
}
for _ in 1 2 3; do
    killed --tunable provider=tcp --tunable rma=on "$PROGRAMS/long_messages" 0 60000001 until_killed
    [ "$status" -eq 137 ] || { cat out err; exit 1; }
    grep -q 'rank 1 .*SIGKILL' err
    killed --survive --tunable provider=tcp --tunable rma=on "$PROGRAMS/long_messages" 0 60000001 survive
    [ "$status" -eq 0 ] || { cat out err; echo "status $status"; exit 1; }
    grep -q 'long_messages: rank 1 is gone' out
done
rm -f out err stats.json
echo "rma_ofi: ok"
