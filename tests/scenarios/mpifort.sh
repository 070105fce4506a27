# mpifort: what it makes on first use, what it answers, and what it says when it cannot.
mpifort="$PREFIX/bin/mpifort"
"$mpifort" --version >/dev/null 2>&1 || { echo "skip: $("$mpifort" --version 2>&1 | head -1)"; exit 77; }
unset PARNASS_FC MPIFORT_FC FC
TMPDIR=$(mktemp -d "$TMPDIR/mpifort.XXXXXX")
trap 'rm -rf "$TMPDIR"' EXIT
fail() { echo "$*"; exit 1; }

# An installation of its own, so that nothing has been made yet.
mkdir -p "$TMPDIR/own/lib"
cp -a "$PREFIX/bin" "$PREFIX/include" "$PREFIX/share" "$TMPDIR/own"
cp -a "$PREFIX"/lib/libmpi_abi* "$TMPDIR/own/lib"
own="$TMPDIR/own/bin/mpifort"
cat >"$TMPDIR/hello.f90" <<'END'
program hello
  use mpi_f08
  implicit none
  integer :: rank
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  print '(a, i0)', 'hello from ', rank
  call MPI_Finalize()
end program
END

# Two at once: both programs are made, and one folder with the modules.
"$own" "$TMPDIR/hello.f90" -o "$TMPDIR/one" &
"$own" "$TMPDIR/hello.f90" -o "$TMPDIR/two"
wait $!
"$TMPDIR/own/bin/mpiexec" -n 2 "$TMPDIR/one" | sort | diff - <(printf 'hello from 0\nhello from 1\n')
[ "$("$TMPDIR/two")" = "hello from 0" ]
[ "$(find "$TMPDIR/own/lib/fortran" -mindepth 1 -maxdepth 1 | wc -l)" -eq 1 ] || fail "$(ls "$TMPDIR/own/lib/fortran")"
"$TMPDIR/own/bin/parnass" info | grep -q "Fortran .*mpi_f08 for" || fail "parnass info does not know of the modules"

# The bodies are in the program: it needs the library of the standard ABI and no other of ours.
readelf -d "$TMPDIR/one" | grep NEEDED | grep -q libmpi_abi.so.1
if readelf -d "$TMPDIR/one" | grep NEEDED | grep -q parnass; then fail "the program needs a library of ours"; fi

# Questions.
modules=$(find "$TMPDIR/own/lib/fortran" -mindepth 1 -maxdepth 1)
[[ "$("$own" -show -c a.f90)" == *"-I$modules -I$TMPDIR/own/include -c a.f90" ]] || fail "$("$own" -show -c a.f90)"
[[ "$("$own" -link_info)" == *"-lparnass_fortran -lmpi_abi" ]] || fail "$("$own" -link_info)"
"$own" -showme:compile | grep -q -- "-I$modules"
[ "$("$TMPDIR/own/bin/mpif90" -showme:command)" = "$("$TMPDIR/own/bin/mpif77" -showme:command)" ]
# What FC names is taken, and a wrapper's name is not.
[ "$(FC=mpifort "$own" -showme:command)" = "$("$own" -showme:command)" ]
[ "$(FC=another "$own" -showme:command)" = another ]

# What cannot be: an error that says what to do.
PARNASS_FC=no-such-compiler "$own" -c "$TMPDIR/hello.f90" -o "$TMPDIR/x.o" 2>"$TMPDIR/said" && fail "a compiler that is not there"
grep -q "no-such-compiler cannot be run.*PARNASS_FC" "$TMPDIR/said" || fail "$(cat "$TMPDIR/said")"
PARNASS_FC=false "$own" -c "$TMPDIR/hello.f90" 2>"$TMPDIR/said" && fail "a compiler that is none"
grep -q "is it a Fortran compiler" "$TMPDIR/said" || fail "$(cat "$TMPDIR/said")"
"$own" -fdefault-integer-8 -c "$TMPDIR/hello.f90" 2>"$TMPDIR/said" && fail "INTEGERs of 8 bytes"
grep -q "INTEGER(8)" "$TMPDIR/said" || fail "$(cat "$TMPDIR/said")"

# Where the installation cannot be written, the modules are kept with the user; and nowhere is an error.
rm -rf "$TMPDIR/own/lib/fortran"
touch "$TMPDIR/own/lib/fortran"
XDG_CACHE_HOME="$TMPDIR/cache" "$own" "$TMPDIR/hello.f90" -o "$TMPDIR/three"
[ "$("$TMPDIR/three")" = "hello from 0" ]
[ "$(find "$TMPDIR/cache/parnass/fortran" -name mpi_f08.mod | wc -l)" -eq 1 ]
touch "$TMPDIR/file"
XDG_CACHE_HOME="$TMPDIR/file" "$own" "$TMPDIR/hello.f90" -o "$TMPDIR/four" 2>"$TMPDIR/said" && fail "no place for the modules"
grep -q "XDG_CACHE_HOME" "$TMPDIR/said" || fail "$(cat "$TMPDIR/said")"
