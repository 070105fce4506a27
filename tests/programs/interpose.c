/* A program's own MPI_Send takes the place of the library's, and calls it by its PMPI_ name. */
#include "check.h"

static int calls;

int MPI_Send(const void *buffer, int count, MPI_Datatype datatype, int destination, int tag, MPI_Comm comm)
{
    calls++;
    return PMPI_Send(buffer, count, datatype, destination, tag, comm);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int value = 1, got = 0;
    MPI_Request request;
    MPI_Irecv(&got, 1, MPI_INT, check_rank, 0, MPI_COMM_WORLD, &request);
    MPI_Send(&value, 1, MPI_INT, check_rank, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(got, 1);
    CHECK_EQUAL(calls, 1);
    /* The library's own collectives do not go through the program's MPI_Send. */
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&value, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQUAL(calls, 1);
    return check_end("interpose");
}
