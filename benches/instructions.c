/* Sends and receives messages to itself, as many as the first argument says, of so many bytes as the second one says: for counting the instructions of a
 * pair. With a third argument, in windows of nonblocking ones. */
#include <mpi.h>
#include <stdlib.h>

enum { window = 64, most = 64 };

static char in[window][most], out[window][most];
static int bytes;
static MPI_Request requests[2 * window];

static void one_pair(void)
{
    MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF);
    MPI_Recv(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void one_window(void)
{
    for (int index = 0; index < window; index++)
        MPI_Irecv(in[index], bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF, &requests[index]);
    for (int index = 0; index < window; index++)
        MPI_Isend(out[index], bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF, &requests[window + index]);
    MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int pairs = argc > 1 ? atoi(argv[1]) : 1;
    bytes = argc > 2 && atoi(argv[2]) < most ? atoi(argv[2]) : most;
    if (argc > 3)
        for (int done = 0; done < pairs; done += window)
            one_window();
    else
        for (int done = 0; done < pairs; done++)
            one_pair();
    MPI_Finalize();
    return 0;
}
