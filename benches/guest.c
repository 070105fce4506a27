/* A polite guest: one rank computes while all others wait in MPI_Recv. Result: the computation's time over its time alone. */
#include "bench.h"

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    int value = 0;
    long steps = repetitions(400) * 1000000L;
    if (rank == 0) {
        /* Alone: before anybody waits, the others sleep outside of MPI. */
        struct timespec settle = {0, 300000000};
        double start = now();
        bench_sink = work(1, steps);
        double alone = now() - start;
        for (int to = 1; to < size; to++)
            MPI_Send(&value, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
        nanosleep(&settle, NULL);
        start = now();
        bench_sink = work(1, steps);
        double among = now() - start;
        for (int to = 1; to < size; to++)
            MPI_Send(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
        char name[64];
        snprintf(name, sizeof name, "slow-down-by-%d-waiting", size - 1);
        result(name, 0, among / alone, "ratio");
    } else {
        /* Until rank 0 has measured itself alone, look for its message now and then only. */
        int here = 0;
        while (!here) {
            struct timespec pause = {0, 20000000};
            nanosleep(&pause, NULL);
            MPI_Iprobe(0, 0, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE);
        }
        MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
