/* A request that reaches a process at the very end of a wait is carried out although that process computes from there on
 * (MPI 5.0, section 12.7.3): each round, rank 0 waits in a barrier, where it carries out some requests of the others, and comes out of it while they
 * already send the next. */
#include "check.h"

int main(int argc, char **argv)
{
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 1000;
    long long wanted = 0;
    volatile long long *counter = calloc(1, sizeof *counter);
    MPI_Win win;
    check_start(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_create((void *)counter, sizeof *counter, sizeof *counter, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    for (long long round = 1; round <= rounds; round++) {
        long long one = 1;
        for (int before = 0; rank != 0 && before < round % 12; before++) {
            MPI_Accumulate(&one, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, MPI_SUM, win);
            MPI_Win_flush(0, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        wanted += (round % 12 + 1) * (size - 1);
        if (rank == 0) {
            while (*counter < wanted)
                sleep_ms(0);
        } else {
            MPI_Accumulate(&one, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, MPI_SUM, win);
            MPI_Win_flush(0, win);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    free((void *)counter);
    return check_end("windows_left");
}
