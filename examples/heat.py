"""The heat equation on a plate with mpi4py, and a picture of it.

    mpiexec -n 4 python heat.py [STEPS [PICTURE.png]]

The plate is cut into bands of rows, one for each rank; in each step neighbours exchange their edge rows. Plain Python, no NumPy.
"""

import sys
from array import array
from math import hypot

from mpi4py import MPI

import picture

WIDTH, HEIGHT = 240, 160


def source(x, y):
    """The temperature that a source keeps at (x, y), or None where there is none."""
    if 31 < hypot(x - 75, y - 75) < 36:
        return 1.0
    if hypot(x - 175, y - 45) < 17:
        return 0.85
    if hypot(x - 75, y - 75) < 5 or (abs(x - 175) < 30 and abs(y - 120) < 3):
        return 0.0
    return None


def main():
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    path = sys.argv[2] if len(sys.argv) > 2 else "heat.png"
    start = MPI.Wtime()

    first, last = HEIGHT * rank // size, HEIGHT * (rank + 1) // size
    up = rank - 1 if rank > 0 else MPI.PROC_NULL
    down = rank + 1 if rank < size - 1 else MPI.PROC_NULL
    fixed = [[(x, source(x, y)) for x in range(WIDTH) if source(x, y) is not None] for y in range(first, last)]
    plate = [array("d", [0.05]) * WIDTH for _ in range(first, last)]
    above, below = array("d", [0.05]) * WIDTH, array("d", [0.05]) * WIDTH

    for _ in range(steps):
        for row, sources in zip(plate, fixed):
            for x, value in sources:
                row[x] = value
        requests = [comm.Irecv(above, up, 0), comm.Irecv(below, down, 1)]
        requests += [comm.Isend(plate[0], up, 1), comm.Isend(plate[-1], down, 0)]
        MPI.Request.Waitall(requests)
        rows = [above, *plate, below]
        new = []
        for index in range(1, len(rows) - 1):
            north, here, south = rows[index - 1], rows[index], rows[index + 1]
            if first + index - 1 in (0, HEIGHT - 1):
                new.append(here)
                continue
            inner = (
                c + 0.24 * (w + e + n + s - 4 * c)
                for w, c, e, n, s in zip(here, here[1:], here[2:], north[1:], south[1:])
            )
            row = array("d", here[:1])
            row.extend(inner)
            row.append(here[-1])
            new.append(row)
        plate = new

    mean = comm.allreduce(sum(map(sum, plate)), op=MPI.SUM) / (WIDTH * HEIGHT)
    bands = comm.gather(plate, root=0)
    if rank == 0:
        pixels = bytearray()
        for band in bands:
            for row in band:
                for value in row:
                    pixels += bytes(picture.heat(value))
        picture.write(path, WIDTH, HEIGHT, pixels)
        print(f"heat: {steps} steps on {size} ranks in {MPI.Wtime() - start:.2f} s, mean temperature {mean:.6f}, picture in {path}")


if __name__ == "__main__":
    main()
