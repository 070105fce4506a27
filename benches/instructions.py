#!/usr/bin/env python3
"""Counts the instructions of a short message, and fails if they exceed the budget: of an MPI_Send and its MPI_Recv, of an
MPI_Isend, its MPI_Irecv, and their parts of the MPI_Waitall, of persistent requests, and of a matched probe.

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
    "MPI_Send and MPI_Recv, 8 bytes": (592, [8]),
    "MPI_Send and MPI_Recv, 64 bytes": (718, [64]),
    "MPI_Isend and MPI_Irecv in windows of 64, 8 bytes": (788, [8, "windows"]),
    "MPI_Startall and MPI_Waitall of a receive and a send, 8 bytes": (1880, [8, "persistent"]),
    "MPI_Send, MPI_Mprobe and MPI_Mrecv, 8 bytes": (1820, [8, "probed"]),
}
MESSAGES = (640, 1920)


def count(command, prefix, folder):
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'out'}", *map(str, command)]
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
            few, many = (count([program, messages, *arguments], prefix, Path(folder)) for messages in MESSAGES)
            one = (many - few) / (MESSAGES[1] - MESSAGES[0])
            print(f"instructions of {name}: {one:.0f}, budget {budget}")
            if one > budget:
                sys.exit("instructions: over the budget; make the path shorter, or say in the budget's commit why it must be longer")


if __name__ == "__main__":
    main()
