# parnass bench, interrupted while a job of its own runs, ends with the signal's code; the runner looks for what is left behind.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# A background job of a script ignores SIGINT unless it is told otherwise.
env --default-signal=INT "$PREFIX/bin/parnass" bench --alone --only guest --milliseconds 5000 --output "$folder/out" >/dev/null 2>"$folder/errors" &
bench=$!
for _ in $(seq 1500); do
    pgrep -f "^$folder/out/programs-parnass/guest" >/dev/null && break
    sleep 0.02
done
kill -INT "$bench"
code=0
wait "$bench" || code=$?
[ "$code" -eq 130 ] || { echo "exit code $code"; cat "$folder/errors"; exit 1; }
grep -q "interrupted by signal 2" "$folder/errors"
[ ! -e "$folder/out/result.json" ]
