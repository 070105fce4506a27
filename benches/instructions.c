/* Sends and receives messages of 8 bytes to itself, as often as the first argument says: for counting the instructions of a pair. With a second
 * argument, in windows of nonblocking ones. */
#include <mpi.h>
#include <stdlib.h>

enum { window = 64 };

static double in[window], out[window];
static MPI_Request requests[2 * window];

static void one_pair(void)
{
    MPI_Send(out, 8, MPI_BYTE, 0, 1, MPI_COMM_SELF);
    MPI_Recv(in, 8, MPI_BYTE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void one_window(void)
{
    for (int index = 0; index < window; index++)
        MPI_Irecv(&in[index], 8, MPI_BYTE, 0, 1, MPI_COMM_SELF, &requests[index]);
    for (int index = 0; index < window; index++)
        MPI_Isend(&out[index], 8, MPI_BYTE, 0, 1, MPI_COMM_SELF, &requests[window + index]);
    MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int pairs = argc > 1 ? atoi(argv[1]) : 1;
    if (argc > 2)
        for (int done = 0; done < pairs; done += window)
            one_window();
    else
        for (int done = 0; done < pairs; done++)
            one_pair();
    MPI_Finalize();
    return 0;
}
