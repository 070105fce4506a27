#!/usr/bin/env python3
"""What mpi4py's calls take on two ranks, in microseconds: objects of several lengths, which are pickled, and buffers.

    mpiexec -n 2 python3 benches/python.py [MILLISECONDS]

under the mpiexec and the mpi4py of any MPI library. Prints `result NAME BYTES VALUE us`, the least of several repetitions.
"""

import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
other = 1 - rank
budget = float(sys.argv[1]) / 1000 if len(sys.argv) > 1 else 0.1
REPETITIONS = 5


def to_and_fro(send, receive):
    if rank == 0:
        send()
        receive()
    else:
        receive()
        send()


def objects(thing):
    """Half a round trip of an object, and collectives of it."""
    return {
        "send-recv": (0.5, lambda: to_and_fro(lambda: world.send(thing, other), lambda: world.recv(source=other))),
        "sendrecv": (1, lambda: world.sendrecv(thing, other, source=other)),
        "bcast": (1, lambda: world.bcast(thing)),
        "gather": (1, lambda: world.gather(thing)),
        "allgather": (1, lambda: world.allgather(thing)),
    }


def buffers(length):
    out, into = [bytearray(length), MPI.BYTE], [bytearray(length), MPI.BYTE]
    return {
        "Send-Recv": (0.5, lambda: to_and_fro(lambda: world.Send(out, other), lambda: world.Recv(into, other))),
        "Sendrecv": (1, lambda: world.Sendrecv(out, other, recvbuf=into, source=other)),
        "Bcast": (1, lambda: world.Bcast(into)),
    }


def measure(calls, length):
    for name, (share, call) in calls.items():
        least, number = None, 1
        for _ in range(REPETITIONS):
            world.Barrier()
            start = time.perf_counter()
            for _ in range(number):
                call()
            taken = (time.perf_counter() - start) / number
            least = taken if least is None else min(least, taken)
            number = world.bcast(max(1, int(budget / REPETITIONS / least)))
        if rank == 0:
            print(f"result {name} {length} {least * share * 1e6:.3f} us", flush=True)


def main():
    if world.Get_size() != 2:
        sys.exit("python.py: two ranks are needed: mpiexec -n 2 python3 benches/python.py")
    for length in (8, 1000, 100_000, 1_000_000):
        measure(objects({"bytes": bytes(length), "number": 1}), length)
        measure(buffers(length), length)


main()
