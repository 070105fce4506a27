/* Rank 1 ends in the way of argument 1 (kill, segfault, exit, abort, abort_0, c_abort, early) while the others wait for a message that never comes. */
#include "check.h"

#include <signal.h>

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    const char *how = argc > 1 ? argv[1] : "kill";
    int value = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 1) {
        if (strcmp(how, "kill") == 0)
            raise(SIGKILL);
        else if (strcmp(how, "segfault") == 0)
            raise(SIGSEGV);
        else if (strcmp(how, "exit") == 0)
            exit(3);
        else if (strcmp(how, "abort") == 0)
            MPI_Abort(MPI_COMM_WORLD, 42);
        else if (strcmp(how, "abort_0") == 0)
            MPI_Abort(MPI_COMM_WORLD, 0);
        else if (strcmp(how, "c_abort") == 0)
            abort();
        else if (strcmp(how, "error") == 0)
            MPI_Send(&value, 1, MPI_INT, check_size + 5, 0, MPI_COMM_WORLD);
        else if (strcmp(how, "early") == 0)
            exit(0);
    }
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
