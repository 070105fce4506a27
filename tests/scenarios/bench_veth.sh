# parnass bench --over veth: values come, their bytes went over the interfaces, and nothing is left, also when it is interrupted or killed.
for program in ip nsenter taskset unshare; do
    command -v "$program" >/dev/null || { echo "skip: $program is not installed"; exit 77; }
done
[ "$(nproc)" -ge 2 ] || { echo "skip: each host needs a core"; exit 77; }
as=--net
unshare --net --mount --uts --ipc true 2>/dev/null || as="--user --map-root-user --net"
unshare $as --mount --uts --ipc sh -c 'mount -t tmpfs tmpfs /dev/shm && ip link add name v type veth peer name w' 2>/dev/null ||
    { echo "skip: namespaces, or virtual Ethernet in them, are not permitted here"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
links=$(ip -o link | grep -c veth0) || true

# Nothing runs any more, and no host is left.
nothing_left() {
    for _ in $(seq 500); do
        pgrep -f "$folder/out/programs" >/dev/null || break
        sleep 0.02
    done
    if pgrep -af "$folder/out/programs"; then exit 1; fi
    if pgrep -af -- '--host veth-a:1'; then exit 1; fi
    [ "$(ip -o link | grep -c veth0)" = "$links" ] || { ip link; exit 1; }
    if grep "$folder" /proc/self/mountinfo; then exit 1; fi
}

"$PREFIX/bin/parnass" bench --alone --quick --over veth --only rate --output "$folder/out" >"$folder/said" 2>&1 || { cat "$folder/said"; exit 1; }
grep -q '"message-rate"' "$folder/out/result.json"
grep -q -- '--over veth' "$folder/out/result.json"
carried=$(sed -n 's/^\([0-9]*\) bytes went over the interfaces.*/\1/p' "$folder/said")
# A window of 64 messages at the very least, and the agents' talk.
[ "$carried" -ge 1000 ] || { cat "$folder/said"; exit 1; }
[ ! -e "$folder/out/hosts" ]
nothing_left
rm "$folder/out/result.json"

for signal in INT TERM KILL; do
    env --default-signal=INT "$PREFIX/bin/parnass" bench --alone --over veth --only collectives --milliseconds 5000 --output "$folder/out" >/dev/null 2>"$folder/errors" &
    bench=$!
    for _ in $(seq 1500); do
        [ "$(pgrep -fc "^$folder/out/programs-parnass/collectives")" -ge 2 ] && break
        sleep 0.02
    done
    kill "-$signal" "$bench"
    code=0
    wait "$bench" || code=$?
    [ "$code" -eq $((128 + $(kill -l "$signal"))) ] || { echo "exit code $code"; cat "$folder/errors"; exit 1; }
    nothing_left
    [ ! -e "$folder/out/result.json" ]
    [ "$signal" = KILL ] || [ ! -e "$folder/out/hosts" ]
done
