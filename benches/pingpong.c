/* Half round trip and bandwidth between two ranks, the sender writing its buffer anew each time. */
#include "bench.h"

static double half_round_trip(unsigned char *out, unsigned char *in, int bytes, int count)
{
    double start = 0;
    for (int round = -count / 10 - 1; round < count; round++) {
        if (round == 0)
            start = now();
        if (rank == 0) {
            memset(out, round, (size_t)bytes);
            MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            memset(out, round, (size_t)bytes);
            MPI_Send(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    return (now() - start) / count / 2;
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    static const int sizes[] = {0, 8, 64, 1024, 4096, 65536, 262144, 1048576, 4194304};
    unsigned char *out = malloc(4194304), *in = malloc(4194304);
    memset(out, 1, 4194304);
    memset(in, 1, 4194304);
    for (int which = 0; which < 9; which++) {
        int bytes = sizes[which];
        int count = repetitions(bytes <= 64 ? 50000 : bytes <= 4096 ? 20000 : bytes <= 65536 ? 3000 : bytes <= 1048576 ? 400 : 100);
        double parts[5];
        for (int part = 0; part < 5; part++)
            parts[part] = half_round_trip(out, in, bytes, count / 5 + 1);
        double seconds = median(parts, 5);
        result("half-round-trip", bytes, seconds * 1e6, "us");
        if (bytes >= 65536)
            result("bandwidth", bytes, bytes / seconds / 1e9, "GB/s");
    }
    MPI_Finalize();
    return 0;
}
