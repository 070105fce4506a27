#!/bin/sh
# Other programs keep all processors busy: a rank that waits notices that it is kept waiting for its own, and looks less often before it sleeps.
set -eu
[ -r /proc/self/schedstat ] || { echo "skip: this kernel does not say how long a thread is kept waiting"; exit 77; }
folder=$(mktemp -d)
trap 'kill $hogs 2> /dev/null || :; rm -rf "$folder"' EXIT
cd "$folder"

hogs=
for _ in $(seq $(($(nproc) * 2))); do
    # The shell that runs this may be killed: they end by themselves.
    timeout 50 sh -c 'while :; do :; done' &
    hogs="$hogs $!"
done

# A job in which nobody waits for long meets nobody; on a slow day more steps are needed.
steps=500
while :; do
    "$PREFIX/bin/mpiexec" --stats=all.json -n 2 "$PROGRAMS/ring" $steps 64 > out
    grep -q 'ring: ok' out
    crowds=$(python3 -c 'import json; print(json.load(open("all.json"))["job"]["counters"]["crowds"])')
    echo "$steps steps: $crowds crowds"
    [ "$crowds" -eq 0 ] || break
    steps=$((steps * 4))
    [ "$steps" -lt 1000000 ]
done
echo "crowd: ok"
