#!/bin/bash
# Hosts of network namespaces, reached by ssh: a rank is killed, and then a host is cut off from the others. Those who are left go on.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/hosts.inc.sh"
hosts 3
cd "$TMPDIR"
mpiexec="$PREFIX/bin/mpiexec"

there "$mpiexec" --survive --host h1:2,h2:1,h3:1 -n 4 "$PROGRAMS/ulfm_work" 1000 > out 2>&1 & job=$!
await 'is process' 4 out
kill -9 "$(sed -n 's/^rank 3 is process //p' out)"
wait "$job" || { cat out; exit 1; }
grep -q 'ulfm_work: ok with 3 ranks, mended at least once' out || { cat out; exit 1; }
grep -q 'rank 3 .* on h3) was killed by signal 9 .*going on with 3 ranks' out

there "$mpiexec" --survive --host h1:1,h2:2,h3:1 -n 4 "$PROGRAMS/ulfm_work" 3000 > out 2>&1 & job=$!
await 'is process' 4 out
ip -n "$net-2" link set eth0 down
wait "$job" || { cat out; exit 1; }
grep -q 'ulfm_work: ok with 2 ranks, mended at least once' out || { cat out; exit 1; }
cat out
rm -f out
echo "survive_hosts: ok"
