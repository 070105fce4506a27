/* A tool that is preloaded: counts the sends of a program. */
#include <mpi.h>
#include <stdio.h>

static int sends = 0;

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int MPI_Finalize(void)
{
    printf("tool: %d sends\n", sends);
    return PMPI_Finalize();
}
