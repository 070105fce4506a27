/* Sends itself three messages. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int value = 17, received = 0;
    MPI_Init(&argc, &argv);
    for (int turn = 0; turn < 3; turn++) {
        MPI_Request request;
        MPI_Irecv(&received, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
        MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return received != 17;
}
