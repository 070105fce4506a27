# Libfabric between hosts of their own: which way is taken, messages, a rank that is killed, and what is said where it cannot be.
. "$(dirname "$0")/hosts.inc.sh"
/sbin/ldconfig -p | grep 'libfabric\.so\.1' >/dev/null || skip "libfabric1 is not installed"
hosts 2
mpiexec="$PREFIX/bin/mpiexec"
out="$TMPDIR/out"
err="$TMPDIR/err"
ofi() {
    there "$mpiexec" --host h1:2,h2:2 --tunable network=ofi "$@"
}

ofi "$PROGRAMS/ring" 100 100000 | grep -q 'ring: ok'
ofi --encrypt "$PROGRAMS/ring" 20 100000 | grep -q 'ring: ok'
ofi --tunable provider=tcp "$PROGRAMS/collectives" | grep -q 'collectives: ok'

# What there is, and what is taken.
host 1 env PARNASS_NETWORK=ofi "$PREFIX/bin/parnass" info >"$out"
grep -q 'between hosts .*libfabric.s tcp' "$out"
grep -q 'libfabric .*tcp' "$out"
host 1 "$PREFIX/bin/parnass" doctor >"$out" || true
grep -q 'between hosts .*TCP' "$out"

# A rank that is killed takes the job with it, on both hosts.
status=0
ofi "$PROGRAMS/die" kill >"$out" 2>"$err" || status=$?
[ "$status" -eq 137 ]
grep -q 'rank 1 .*SIGKILL' "$err"
nothing_runs "$PROGRAMS/die kill"

# A provider that is not there, and a network that is not.
status=0
ofi --tunable provider=verbs9 "$PROGRAMS/ring" 1 8 >"$out" 2>"$err" || status=$?
[ "$status" -ne 0 ]
grep -q 'no provider verbs9' "$err"
grep -q 'those that do: .*tcp' "$err"
status=0
ofi --tunable network=carrier_pigeon "$PROGRAMS/ring" 1 8 >"$out" 2>"$err" || status=$?
[ "$status" -ne 0 ]
grep -q "tcp, ofi or auto" "$err"
rm -f "$out" "$err"
