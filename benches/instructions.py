#!/usr/bin/env python3
"""Counts the instructions of an MPI_Send and its MPI_Recv of 8 bytes, and fails if they exceed the budget.

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
# Instructions of one pair, in a release build. Lower it when the path gets shorter.
BUDGET = 950
ROUNDS = (500, 1500)


def count(program, rounds, prefix, folder):
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'out'}", str(program), str(rounds)]
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
        few, many = (count(program, rounds, prefix, Path(folder)) for rounds in ROUNDS)
    pair = (many - few) / (ROUNDS[1] - ROUNDS[0])
    print(f"instructions of MPI_Send and MPI_Recv, 8 bytes: {pair:.0f}, budget {BUDGET}")
    if pair > BUDGET:
        sys.exit("instructions: over the budget; make the path shorter, or say in the budget's commit why it must be longer")


if __name__ == "__main__":
    main()
