# A file with holes, in a file system that is too small for it.
small="$TMPDIR/small"
mkdir "$small"
unshare -m mount -t tmpfs -o size=256k none "$small" 2>/dev/null || { echo "skip: no file system can be mounted here"; rmdir "$small"; exit 77; }
unshare -m sh -e -c '
    mount -t tmpfs -o size=256k none "$1"
    TMPDIR="$1" "$PREFIX/bin/mpiexec" -n 1 "$PROGRAMS/chapter_14_sieving" full >"$2"
' sh "$small" "$TMPDIR/out"
grep -q "chapter_14_sieving: ok" "$TMPDIR/out" || { cat "$TMPDIR/out"; exit 1; }
rmdir "$small"
rm "$TMPDIR/out"
