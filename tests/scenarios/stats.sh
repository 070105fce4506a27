#!/bin/sh
# mpiexec --stats: a table at the end, or JSON in a file; nothing where it is not asked for; also when a rank dies.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mpiexec="$PREFIX/bin/mpiexec"

"$mpiexec" -n 2 "$PROGRAMS/ring" 100 64 2> quiet > out
if [ -s quiet ]; then echo "something was told that nobody asked for:"; cat quiet; exit 1; fi

"$mpiexec" --stats -n 2 "$PROGRAMS/ring" 100 64 2> table > out
cat table
grep -q 'ring: ok' out
grep -q 'sent short' table
grep -Eq '^ +0  ' table
grep -Eq '^ +1  ' table
grep -Eq '^ +all  ' table
[ "$(wc -l < table)" -eq 5 ]

# Every counter, and sums that are right: what is sent within the job is received there.
"$mpiexec" --stats=all.json -n 3 "$PROGRAMS/ring" 50 5000 2> quiet > out
[ ! -s quiet ]
python3 - all.json 3 <<'PY'
import json, sys
document = json.load(open(sys.argv[1]))
ranks, job = document["ranks"], document["job"]["counters"]
assert [rank["rank"] for rank in ranks] == list(range(int(sys.argv[2]))), ranks
for rank in ranks:
    assert rank["end"] == "exited with code 0", rank["end"]
    assert rank["cpu_seconds"] > 0 and rank["peak_kib"] > 1000, rank
    assert rank["counters"]["sent_chunk_messages"] >= 50, rank["counters"]
for name, value in job.items():
    values = [rank["counters"][name] for rank in ranks]
    expected = max(values) if name.endswith("_most") else sum(values)
    assert abs(value - expected) < 1e-6, (name, value, values)
for what in "messages", "bytes":
    for way in "short", "chunk", "pipe", "direct", "stream", "announced":
        sent, received = job[f"sent_{way}_{what}"], job[f"received_{way}_{what}"]
        assert sent == received, (way, what, sent, received)
assert job["time_waiting_seconds"] >= job["time_asleep_seconds"] >= 0
PY

# Ranks on other hosts tell through their agents.
"$mpiexec" --stats=hosts.json --starter local --host a:1,b:2 -n 3 "$PROGRAMS/ring" 20 2000000 > out 2> quiet
python3 - hosts.json <<'PY'
import json, sys
document = json.load(open(sys.argv[1]))
assert [rank["host"] for rank in document["ranks"]] == ["a", "b", "b"]
job = document["job"]["counters"]
assert job["network_connections"] >= 2 and job["sent_announced_messages"] >= 20, job
assert job["network_sent_bytes"] > 20 * 2000000, job
PY

# A rank that dies: what is known is told, and how it ended.
code=0
"$mpiexec" --stats -n 2 "$PROGRAMS/die" kill 1 2> table > out || code=$?
cat table
[ "$code" -eq 137 ]
grep -Eq '^ +1 .*killed by signal 9' table
grep -Eq '^ +all ' table

# A program that knows nothing of MPI, and one that cannot be started.
"$mpiexec" --stats -n 2 "$PROGRAMS/no_mpi" 2> table > out
grep -q 'CPU' table
if grep -q 'waiting' table; then echo "nobody waited in MPI:"; cat table; exit 1; fi

# What cannot be written, and what names nothing.
code=0
"$mpiexec" --stats="$folder/no/such/folder" -n 1 "$PROGRAMS/hello" 2> table > out || code=$?
[ "$code" -eq 1 ]
grep -q 'cannot be written' table
code=0
"$mpiexec" --stats= -n 1 "$PROGRAMS/hello" 2> table > out || code=$?
[ "$code" -eq 2 ]
echo "stats: ok"
