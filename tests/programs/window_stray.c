/* Rank 1 puts at an address of rank 0, on another host, where nothing is attached: rank 0 ends the job and says so. */
#include "check.h"

int main(int argc, char **argv)
{
    int value = 1;
    MPI_Win win;
    check_start(&argc, &argv);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    if (check_rank == 1) {
        MPI_Put(&value, 1, MPI_INT, 0, 64, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return check_end("window_stray");
}
