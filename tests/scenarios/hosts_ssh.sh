# mpiexec over several hosts by ssh: where ranks run, input, output, codes, and ends.
. "$(dirname "$0")/hosts.inc.sh"
hosts 3
mpiexec="$PREFIX/bin/mpiexec"
out="$TMPDIR/out"
err="$TMPDIR/err"

# Where each rank runs, all hosts started from here and one by the other.
place='echo $PARNASS_RANK $PARNASS_LOCAL_RANK $(ip -4 -o addr show dev eth0 | sed "s/.*inet \([0-9.]*\).*/\1/")'
for fan_out in 0 1; do
    there "$mpiexec" --fan-out "$fan_out" --host h1:2,h2:1,h3:1 sh -c "$place" | sort >"$out"
    printf '%s\n' "0 0 10.213.0.1" "1 1 10.213.0.1" "2 0 10.213.0.2" "3 0 10.213.0.3" | diff - "$out"
done
printf 'h1 slots=2\nh[2-3]\n' >"$TMPDIR/hostfile"
there "$mpiexec" --hostfile "$TMPDIR/hostfile" --map-by node sh -c "$place" | sort >"$out"
printf '%s\n' "0 0 10.213.0.1" "1 0 10.213.0.2" "2 0 10.213.0.3" "3 1 10.213.0.1" | diff - "$out"

# Input, labels, exit codes.
status=0
echo hello | there "$mpiexec" -l --host h1,h2 sh -c 'cat; exit $((PARNASS_RANK * 7))' >"$out" 2>"$err" || status=$?
[ "$status" -eq 7 ] && [ "$(cat "$out")" = "[0] hello" ]
grep -q 'rank 1 (sh, process [0-9]* on h2) exited with code 7' "$err"

# Hosts that cannot be reached, or have no Parnass, are told with what ssh said and what to do; nothing is started.
status=0
there "$mpiexec" --host h1,10.213.0.99 touch "$TMPDIR/started" 2>"$err" || status=$?
[ "$status" -eq 1 ] && [ ! -e "$TMPDIR/started" ]
grep -q 'no agent could be started on 10.213.0.99' "$err"
grep -q 'it said: ssh: connect to host 10.213.0.99 port 22: No route to host' "$err"
grep -q 'parnass doctor 10.213.0.99' "$err"
there "$mpiexec" --prefix /nowhere --host h1 true 2>"$err" && exit 1
grep -q 'is Parnass installed there as /nowhere/bin/mpiexec' "$err"

# The doctor finds both hosts in order, and says what is wrong with a third.
there "$PREFIX/bin/parnass" doctor h[1-2] >"$out"
[ "$(grep -c 'port there .*can be reached' "$out")" -eq 2 ] && [ "$(grep -c 'port here .*can be reached' "$out")" -eq 2 ]
there "$PREFIX/bin/parnass" doctor --prefix /nowhere h1 >"$out" && exit 1
grep -q 'install Parnass there in /nowhere' "$out"

# mpiexec killed: nothing is left on any host.
there "$mpiexec" --host h1,h2 --fan-out 1 sh -c 'echo ready; exec sleep 31415' >"$out" &
await ready 2 "$out"
pkill -9 -f "^$mpiexec --host h1,h2"
wait $! && exit 1
nothing_runs 'sleep 31415'

# A link that is cut in the middle: told within seconds, and the ranks behind it end too.
status=0
there "$mpiexec" --host h1,h2 sh -c 'echo ready; exec sleep 27182' >"$out" 2>"$err" &
await ready 2 "$out"
ip -n "$net-2" link set eth0 down
wait $! || status=$?
[ "$status" -eq 1 ]
grep -q 'the agent on h2 is lost: it has not answered for 10 s' "$err"
nothing_runs 'sleep 27182'
rm -f "$out" "$err" "$TMPDIR/hostfile"
