# Hosts with interfaces that lead nowhere, scanned while they work, frozen, and cut off in the middle of transfers.
. "$(dirname "$0")/hosts.inc.sh"
command -v nmap >/dev/null || skip "nmap is not installed"
hosts 4
mpiexec="$PREFIX/bin/mpiexec"
out="$TMPDIR/out"
err="$TMPDIR/err"
scan="$TMPDIR/scan"

# Every host has the same address for its containers, and a network of its own that nobody else is in; both come before the good one.
for n in 1 2 3 4; do
    for other in "containers 172.17.0.1/16" "private 10.99.$n.1/24"; do
        set -- $other
        ip -n "$net-$n" link add "$1" type veth peer name "$1-end"
        ip -n "$net-$n" addr add "$2" dev "$1"
        ip -n "$net-$n" link set "$1" up
        ip -n "$net-$n" link set "$1-end" up
    done
done
for names in h1,h2 h1:1,h2:1,h3:1,h4:1; do
    there timeout 100 "$mpiexec" --host "$names" "$PROGRAMS/traffic" 7 100 >"$out" 2>&1 || { cat "$out"; exit 1; }
    grep -q 'traffic: ok' "$out"
done

# Told to use one of them, it says so instead of waiting for ever.
status=0
there timeout 100 "$mpiexec" --host h1,h2 --interface private "$PROGRAMS/traffic" 7 100 >"$out" 2>&1 || status=$?
[ "$status" -ne 0 ] && [ "$status" -ne 124 ] || { cat "$out"; exit 1; }
grep -q 'cannot be reached' "$out" || { cat "$out"; exit 1; }
grep -q '10\.99\.[12]\.1' "$out" || { cat "$out"; exit 1; }

# The ports of all hosts are scanned, and those of the ranks asked what they speak, while they work: they refuse, count it, and go on.
there timeout 200 "$mpiexec" --stats --host h1:1,h2:1,h3:1,h4:1 "$PROGRAMS/traffic" 8 10000 >"$out" 2>"$err" &
job=$!
sleep 1
# On a busy machine a scan so fast may get no answer in time.
for attempt in 1 2 3; do
    there nmap -Pn -n -p 32768-60999 --open --min-rate 30000 --max-retries "$attempt" -T5 -oG "$scan" 10.213.0.1-4 >/dev/null
    ports=$({ grep -o '[0-9]*/open' "$scan" || true; } | cut -d/ -f1 | sort -u | paste -sd,)
    [ -z "$ports" ] || break
done
[ -n "$ports" ] || { echo "no scan has found an open port"; cat "$scan" "$out" "$err"; exit 1; }
there nmap -Pn -n -sT -sV --version-light --host-timeout 20s -p "$ports" 10.213.0.1-4 >"$scan"
wait "$job" || { cat "$out" "$err"; exit 1; }
grep -q 'traffic: ok' "$out"
# They have met it.
grep -q 'strangers refused' "$err" || { cat "$err" "$scan"; exit 1; }

# A host is frozen in the middle: told within seconds. What it was running ends when it thaws.
there "$mpiexec" --host h1,h2,h3 "$PROGRAMS/traffic" 9 1000000 >"$out" 2>"$err" &
job=$!
sleep 2
frozen=$(ip netns pids "$net-2")
kill -STOP $frozen
status=0
wait "$job" || status=$?
kill -CONT $frozen
[ "$status" -eq 1 ] || { cat "$err"; exit 1; }
grep -q 'the agent on h2 is lost: it has not answered for 10 s' "$err" || { cat "$err"; exit 1; }
nothing_runs "$PROGRAMS/traffic"

# A link is cut in the middle of transfers.
there "$mpiexec" --host h1,h2,h3 "$PROGRAMS/traffic" 10 1000000 >"$out" 2>"$err" &
job=$!
sleep 2
ip -n "$net-3" link set eth0 down
status=0
wait "$job" || status=$?
[ "$status" -eq 1 ] || { cat "$err"; exit 1; }
grep -q 'the agent on h3 is lost: it has not answered for 10 s' "$err" || { cat "$err"; exit 1; }
nothing_runs "$PROGRAMS/traffic"
rm -f "$out" "$err" "$scan"
