"""Runs mpi4py's test suite with each process's output in a file of its own.

Usage, under mpiexec: run_mpi4py.py FOLDER TEST_MAIN ARGUMENTS...

Several ranks' reports on one stream cannot be told apart, and a rank that is killed says nothing: so each process
writes FOLDER/PID.txt, and a process that ends in peace writes its exit status on the last line.
"""

import os
import runpy
import sys


def main():
    folder, test_main, *arguments = sys.argv[1:]
    report = os.open(os.path.join(folder, f"{os.getpid()}.txt"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(report, 1)
    os.dup2(report, 2)
    sys.argv = [test_main, *arguments]
    sys.path.insert(0, os.path.dirname(test_main))
    sys.dont_write_bytecode = True
    status = 0
    try:
        runpy.run_path(test_main, run_name="__main__")
    except SystemExit as end:
        status = end.code
    sys.stdout.flush()
    print(f"exit status {int(bool(status))}", flush=True)
    sys.exit(int(bool(status)))


if __name__ == "__main__":
    main()
