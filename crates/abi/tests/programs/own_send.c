/* A program's own MPI_Send takes the place of the library's, and calls it as PMPI_Send. */
#include <mpi.h>
#include <stdio.h>

static int sends = 0;

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int main(int argc, char **argv)
{
    int value = 17, received = 0;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Irecv(&received, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
    MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    printf("sends %d received %d\n", sends, received);
    return !(sends == 1 && received == 17);
}
