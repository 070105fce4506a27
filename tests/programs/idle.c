/* Rank 0 sleeps for two seconds while every other rank waits for it, in a receive and in a barrier: waiting uses no CPU. */
#include "check.h"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    double before = cpu_seconds();
    int value = 7;
    if (check_rank == 0) {
        sleep_ms(1000);
        for (int to = 1; to < check_size; to++)
            MPI_Send(&value, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
        sleep_ms(1000);
    } else {
        MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double used = cpu_seconds() - before;
    /* Two seconds of spinning would be 2.0; the bound leaves room for a slow machine. */
    CHECK(used < 0.5, "used %.3f s of CPU while waiting 2 s", used);
    if (check_rank == 0)
        printf("CPU used by rank 0 in 2 s: %.4f s\n", used);
    return check_end("idle");
}
