#!/usr/bin/env python3
"""Counts the instructions of a short message, and fails if they exceed the budget: of an MPI_Send and its MPI_Recv, of an
MPI_Isend, its MPI_Irecv, and their parts of the MPI_Waitall, of persistent requests, and of a matched probe; and those of a
broadcast at its root, whose length is not that of the last one, and of a nonblocking one.

    benches/instructions.py --ours target/prefix

A count is not a time, but it does not depend on the machine's mood. It needs valgrind; without it nothing is counted.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Instructions of one message, in a release build, and the arguments of the program. Lower them when the path gets shorter.
WAYS = {
    "MPI_Send and MPI_Recv, 8 bytes": (596, [8]),
    "MPI_Send and MPI_Recv, 64 bytes": (724, [64]),
    "MPI_Isend and MPI_Irecv in windows of 64, 8 bytes": (794, [8, "windows"]),
    "MPI_Startall and MPI_Waitall of a receive and a send, 8 bytes": (1880, [8, "persistent"]),
    "MPI_Send, MPI_Mprobe and MPI_Mrecv, 8 bytes": (1820, [8, "probed"]),
    "MPI_Bcast at the root of two ranks, another length each time": (1800, [8, "broadcasts"]),
    "MPI_Ibcast and MPI_Wait at the root of two ranks, 8 bytes": (1200, [8, "started"]),
}
# Those that need a second rank, which is not counted: so few that rank 0 never waits for it.
OF_TWO = ["broadcasts", "started"]
MESSAGES = (640, 1920)
MESSAGES_OF_TWO = (64, 192)


def count(command, prefix, folder):
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'out'}"]
    of_two = command[-1] in OF_TWO
    command = [*valgrind, *map(str, command)]
    if of_two:
        first = f'if [ "$PARNASS_RANK" = 0 ]; then exec "$@"; else shift {len(valgrind)}; exec "$@"; fi'
        command = [str(prefix / "bin/mpiexec"), "-n", "2", "sh", "-c", first, "sh", *command]
    environment = dict(os.environ, LD_LIBRARY_PATH=str(prefix / "lib"))
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"instructions: valgrind gave no count:\n{done.stderr[-2000:]}")
    return int(found[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="an installation of Parnass")
    prefix = Path(parser.parse_args().ours).resolve()
    if not shutil.which("valgrind"):
        print("instructions: not counted, there is no valgrind")
        return
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "instructions"
        subprocess.run([str(prefix / "bin/mpicc"), "-O2", str(HERE / "instructions.c"), "-o", str(program)], check=True)
        for name, (budget, arguments) in WAYS.items():
            numbers = MESSAGES_OF_TWO if arguments[-1] in OF_TWO else MESSAGES
            few, many = (count([program, number, *arguments], prefix, Path(folder)) for number in numbers)
            one = (many - few) / (numbers[1] - numbers[0])
            print(f"instructions of {name}: {one:.0f}, budget {budget}")
            if one > budget:
                sys.exit("instructions: over the budget; make the path shorter, or say in the budget's commit why it must be longer")


if __name__ == "__main__":
    main()
