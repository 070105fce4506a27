"""The Mandelbrot set by a task farm with mpi4py, and a picture of it.

    mpiexec -n 4 python mandelbrot.py [PICTURE.png]

Rank 0 hands out rows, one at a time, to whichever rank is idle, so that ranks with easy rows take more of them. On one rank it does
the work itself.
"""

import math
import sys

from mpi4py import MPI

import picture

WIDTH, HEIGHT, LIMIT = 480, 320, 160
DONE = 1


def colour(real, imaginary):
    """The colour of one point: dark inside the set, by the smoothed number of steps outside."""
    x = y = 0.0
    for step in range(LIMIT):
        xx, yy = x * x, y * y
        if xx + yy > 64.0:
            smooth = step + 1 - math.log2(math.log2(xx + yy) / 2)
            return picture.heat(math.sqrt(max(smooth, 0.0) / LIMIT) * 1.35)
        x, y = xx - yy + real, 2 * x * y + imaginary
    return (4, 4, 12)


def row_of(y):
    imaginary = (y - HEIGHT / 2) * 2.4 / HEIGHT
    return b"".join(bytes(colour((x - WIDTH * 0.68) * 2.4 / HEIGHT, imaginary)) for x in range(WIDTH))


def farmer(comm):
    """Hands out all rows and returns them with the number that each rank did."""
    rows, shares = {}, [0] * comm.size
    todo = iter(range(HEIGHT))
    working = comm.size - 1
    if working == 0:
        return {y: row_of(y) for y in todo}, [HEIGHT]
    status = MPI.Status()
    while working:
        result = comm.recv(source=MPI.ANY_SOURCE, status=status)
        if result is not None:
            rows[result[0]] = result[1]
            shares[status.source] += 1
        y = next(todo, None)
        if y is None:
            comm.send(None, dest=status.source, tag=DONE)
            working -= 1
        else:
            comm.send(y, dest=status.source)
    return rows, shares


def worker(comm):
    """Asks for a row, computes it, sends it, until there are none."""
    result, status = None, MPI.Status()
    while True:
        comm.send(result, dest=0)
        y = comm.recv(source=0, status=status)
        if status.tag == DONE:
            return
        result = (y, row_of(y))


def main():
    comm = MPI.COMM_WORLD
    path = sys.argv[1] if len(sys.argv) > 1 else "mandelbrot.png"
    start = MPI.Wtime()
    if comm.rank == 0:
        rows, shares = farmer(comm)
        picture.write(path, WIDTH, HEIGHT, b"".join(rows[y] for y in range(HEIGHT)))
        print(f"mandelbrot: {HEIGHT} rows in {MPI.Wtime() - start:.2f} s, rows by rank {shares}, picture in {path}")
    else:
        worker(comm)


if __name__ == "__main__":
    main()
