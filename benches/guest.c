/* A polite guest: rank 0 computes while all others wait in MPI_Recv. Results: the computation's time over its time alone, and the cores that the waiting
 * ranks kept busy meanwhile (their CPU time over the computation's). */
#include "bench.h"

#include <sys/resource.h>

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void pause_for(long milliseconds)
{
    struct timespec pause = {0, milliseconds * 1000000};
    nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    int value = 0;
    double used = 0, all_used;
    if (rank == 0) {
        /* Alone: before anybody waits, the others sleep outside of MPI. */
        long steps = (long)(work_rate() * 4 * budget);
        double start = now();
        bench_sink = work(1, steps);
        double alone = now() - start;
        for (int to = 1; to < size; to++)
            MPI_Send(&value, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
        pause_for(200);
        start = now();
        bench_sink = work(1, steps);
        double among = now() - start;
        for (int to = 1; to < size; to++)
            MPI_Send(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
        char name[64];
        snprintf(name, sizeof name, "slow-down-by-%d-waiting", size - 1);
        result(name, 0, among / alone, "ratio");
        MPI_Reduce(&used, &all_used, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        snprintf(name, sizeof name, "cores-used-by-%d-waiting", size - 1);
        /* They began to wait a pause before the computation began. */
        result(name, 0, all_used / (among + 0.2), "cores");
    } else {
        /* Until rank 0 has measured itself alone, look for its message now and then only. */
        int here = 0;
        while (!here) {
            pause_for(20);
            MPI_Iprobe(0, 0, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE);
        }
        MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double before = cpu_seconds();
        MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        used = cpu_seconds() - before;
        MPI_Reduce(&used, &all_used, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
