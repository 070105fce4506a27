# What reaches the ranks. Each line reads `rank R: NAME=VALUE in FOLDER`.
run() { "$PREFIX/bin/mpiexec" "$@" "$PROGRAMS/environment" COLOUR; }
expect() {
    grep -qF -- "$1" <<<"$said" || { echo "expected '$1' in:"; echo "$said"; exit 1; }
}
said=$(run -n 2 -env COLOUR red)
expect "rank 1: COLOUR=red"
said=$(run -genv COLOUR green -n 2)
expect "rank 0: COLOUR=green"
said=$(COLOUR=blue run -n 2 -x COLOUR)
expect "rank 1: COLOUR=blue"
said=$(run -n 1 -x COLOUR=white)
expect "rank 0: COLOUR=white"
said=$(COLOUR=plain run -n 1)
expect "rank 0: COLOUR=plain"
mkdir "$TMPDIR/place"
said=$(run -wdir "$TMPDIR/place" -n 1)
expect "in $(cd "$TMPDIR/place" && pwd -P)"
rmdir "$TMPDIR/place"
said=$("$PREFIX/bin/mpiexec" -n 1 -env COLOUR one "$PROGRAMS/environment" COLOUR : -n 2 -env COLOUR two "$PROGRAMS/environment" COLOUR)
expect "rank 0: COLOUR=one"
expect "rank 2: COLOUR=two"
"$PREFIX/bin/mpirun" -np 2 "$PROGRAMS/hello" | grep -c "of 2" | grep -qx 2
