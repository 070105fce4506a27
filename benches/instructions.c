/* Sends and receives messages to itself, as many as the first argument says, of so many bytes as the second one says: for counting the instructions of a
 * pair. With a third argument in windows of nonblocking ones ("windows"), by persistent requests ("persistent"), or probed first ("probed"). Or rank 0 of two
 * broadcasts, each time another number of bytes ("broadcasts"), or always so many in nonblocking ones that are waited for ("started"). */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

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

static void one_persistent(void)
{
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void one_probed(void)
{
    MPI_Message message;
    MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF);
    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
}

static void one_broadcast(int number)
{
    MPI_Bcast(out, number % 40 + 1, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void one_started(void)
{
    MPI_Ibcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int pairs = argc > 1 ? atoi(argv[1]) : 1;
    bytes = argc > 2 && atoi(argv[2]) < most ? atoi(argv[2]) : most;
    const char *way = argc > 3 ? argv[3] : "";
    if (strcmp(way, "windows") == 0) {
        for (int done = 0; done < pairs; done += window)
            one_window();
    } else if (strcmp(way, "persistent") == 0) {
        MPI_Recv_init(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF, &requests[0]);
        MPI_Send_init(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF, &requests[1]);
        for (int done = 0; done < pairs; done++)
            one_persistent();
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    } else if (strcmp(way, "probed") == 0) {
        for (int done = 0; done < pairs; done++)
            one_probed();
    } else if (strcmp(way, "broadcasts") == 0) {
        for (int done = 0; done < pairs; done++)
            one_broadcast(done);
    } else if (strcmp(way, "started") == 0) {
        for (int done = 0; done < pairs; done++)
            one_started();
    } else {
        for (int done = 0; done < pairs; done++)
            one_pair();
    }
    MPI_Finalize();
    return 0;
}
