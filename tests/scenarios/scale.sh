# 256 ranks on 8 simulated hosts: allreduces, barriers and a ring; what memory and how many connections a rank needs, which are bounded by
# logarithms of the number of hosts, not by the number of ranks. docs/scaling.md has the model.
. "$(dirname "$0")/hosts.inc.sh"
hosts 8
out="$TMPDIR/out"
# The connections that no rank may exceed: both sides of the exchanges in which the 8 speakers of the hosts take part, in 3 rounds, and two for
# neighbours in rings and trees that are none of these. More ranks on the hosts need no more.
most=8
for each in 2 8 32; do
    names=$(for n in $(seq 8); do printf 'h%s:%s,' "$n" "$each"; done)
    there "$PREFIX/bin/mpiexec" --host "${names%,}" "$PROGRAMS/scale" "$most" "$(date +%s.%N)" >"$out"
    cat "$out"
    grep -q 'scale: ok' "$out"
done
rm -f "$out"
