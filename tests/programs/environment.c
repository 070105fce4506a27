/* What mpiexec passes on: prints the variable named by argument 1 and the working directory, in rank order. */
#include "check.h"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    char place[4096] = "";
    CHECK(getcwd(place, sizeof place) != NULL, "no working directory");
    for (int turn = 0; turn < check_size; turn++) {
        if (turn == check_rank) {
            const char *value = argc > 1 ? getenv(argv[1]) : NULL;
            printf("rank %d: %s=%s in %s\n", check_rank, argc > 1 ? argv[1] : "", value ? value : "(unset)", place);
            fflush(stdout);
            sleep_ms(20);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
