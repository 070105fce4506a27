# On one core of those at hand: four ranks work, and none of them may run elsewhere.
core=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
taskset -c "$core" "$PREFIX/bin/mpiexec" -n 4 "$PROGRAMS/ring" 50 64 | grep -q "ring: ok"
allowed=$(taskset -c "$core" "$PREFIX/bin/mpiexec" -n 2 grep Cpus_allowed_list /proc/self/status | sort -u)
[ "$(wc -l <<<"$allowed")" -eq 1 ] && [ "${allowed##*[[:space:]]}" = "$core" ] || { echo "$allowed"; exit 1; }
