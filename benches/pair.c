/* Half round trip of 8 bytes between ranks 0 and 1 while all others wait in MPI_Recv. */
#include "bench.h"

static double half_round_trip(int count)
{
    uint64_t data = 0;
    int other = 1 - rank;
    double start = now();
    for (int round = 0; round < count; round++) {
        if (rank == 0)
            MPI_Send(&data, 8, MPI_BYTE, other, 0, MPI_COMM_WORLD);
        MPI_Recv(&data, 8, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(&data, 8, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    }
    return (now() - start) / count / 2;
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    int value = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank > 1) {
        MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        /* Time for the others to arrive in their receive. */
        struct timespec pause = {0, 200000000};
        nanosleep(&pause, NULL);
        double parts[5];
        double fits = budget / 10 / half_round_trip(20);
        int count = fits < 20 ? 20 : fits > 100000 ? 100000 : (int)fits;
        if (rank == 0)
            MPI_Send(&count, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
        else
            MPI_Recv(&count, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int part = 0; part < 5; part++)
            parts[part] = half_round_trip(count);
        char name[64];
        snprintf(name, sizeof name, "half-round-trip-among-%d-waiting", size - 2);
        result(name, 8, median(parts, 5) * 1e6, "us");
        for (int to = 2; rank == 0 && to < size; to++)
            MPI_Send(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
