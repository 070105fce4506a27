"""Runs mpi4py's test suite with each process's output in a file of its own.

Usage, under mpiexec: run_mpi4py.py FOLDER TEST_MAIN ARGUMENTS...

Several ranks' reports on one stream cannot be told apart, and a rank that is killed says nothing: so each process
writes FOLDER/PID.txt, and a process that ends in peace writes its exit status on the last line.
"""

import os
import runpy
import sys
import unittest


def tell_absent_parts():
    """Lets test modules see, while they are imported, that files are not there.

    Some modules try one when they are imported, to switch their tests off, and understand NotImplementedError only, which mpi4py
    raises when it was compiled without a call; a call that exists and fails with MPI_ERR_UNSUPPORTED_OPERATION stops the import of
    the whole module instead.
    """
    from mpi4py import MPI

    def absent(*_arguments, **_options):
        raise NotImplementedError

    stand_ins = {
        "File": type("File", (MPI.File,), {"Open": staticmethod(absent)}),
    }
    originals = {name: getattr(MPI, name) for name in stand_ins}
    load = unittest.TestLoader._get_module_from_name

    def load_with_stand_ins(loader, name):
        try:
            for key, stand_in in stand_ins.items():
                setattr(MPI, key, stand_in)
            return load(loader, name)
        finally:
            for key, original in originals.items():
                setattr(MPI, key, original)

    unittest.TestLoader._get_module_from_name = load_with_stand_ins


def main():
    folder, test_main, *arguments = sys.argv[1:]
    report = os.open(os.path.join(folder, f"{os.getpid()}.txt"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(report, 1)
    os.dup2(report, 2)
    sys.argv = [test_main, *arguments]
    sys.path.insert(0, os.path.dirname(test_main))
    sys.dont_write_bytecode = True
    tell_absent_parts()
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
