# Rank 0 reads what mpiexec reads; the digest (FNV-1a) is computed a second time by Python.
python3 - "$TMPDIR/data" <<'END'
import random, sys
random.seed(7)
open(sys.argv[1], "wb").write(random.randbytes(20_000_003))
END
said=$("$PREFIX/bin/mpiexec" -n 3 "$PROGRAMS/streams" digest <"$TMPDIR/data")
alone=$("$PROGRAMS/streams" digest <"$TMPDIR/data")
[ "$said" = "$alone" ] || { echo "got '$said', expected '$alone'"; exit 1; }
case "$said" in "stdin: 20000003 bytes"*) ;; *) echo "got '$said'"; exit 1 ;; esac
said=$("$PREFIX/bin/mpiexec" -n 2 "$PROGRAMS/streams" digest </dev/null)
case "$said" in "stdin: 0 bytes"*) ;; *) echo "empty input: '$said'"; exit 1 ;; esac
said=$(cat "$TMPDIR/data" | "$PREFIX/bin/mpiexec" -n 2 "$PROGRAMS/streams" digest)
[ "$said" = "$alone" ] || { echo "through a pipe: '$said', expected '$alone'"; exit 1; }
# A program that does not read its input ends all the same, and so does mpiexec.
timeout 20 "$PREFIX/bin/mpiexec" -n 2 "$PROGRAMS/no_mpi" <"$TMPDIR/data" >"$TMPDIR/out"
rm "$TMPDIR/data" "$TMPDIR/out"
