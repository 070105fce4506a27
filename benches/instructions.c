/* Sends and receives messages to itself, as often as the first argument says: for counting the instructions of a pair. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    double data = 0;
    for (int round = 0; round < rounds; round++) {
        MPI_Send(&data, 8, MPI_BYTE, 0, 1, MPI_COMM_SELF);
        MPI_Recv(&data, 8, MPI_BYTE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
