/* Message rate between two ranks: windows of 64 nonblocking messages of 8 bytes; one way, each window acknowledged, and both ways at once, counting the
 * messages of both. And messages of several lengths one after the other, by MPI_Send to a rank that does nothing but MPI_Recv: time of each. */
#include "bench.h"

enum { window = 64 };

static uint64_t out[window], in[window];
static MPI_Request requests[2 * window];

static void one_way(void *context)
{
    (void)context;
    if (rank == 0) {
        for (int index = 0; index < window; index++)
            MPI_Isend(&out[index], 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[index]);
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        for (int index = 0; index < window; index++)
            MPI_Irecv(&in[index], 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[index]);
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static void both_ways(void *context)
{
    (void)context;
    int other = 1 - rank;
    if (rank > 1)
        return;
    for (int index = 0; index < window; index++)
        MPI_Irecv(&in[index], 8, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[index]);
    for (int index = 0; index < window; index++)
        MPI_Isend(&out[index], 8, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[window + index]);
    MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
}

static unsigned char *buffer;

static void one_after_the_other(void *context)
{
    int bytes = *(const int *)context;
    if (rank == 0) {
        memset(buffer, 1, (size_t)bytes);
        MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1)
        MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    static int sizes[] = {8, 64, 1024, 4096, 16384, 65536};
    bench_start(&argc, &argv);
    buffer = memory(65536);
    double seconds = seconds_per_call(one_way, NULL);
    result("message-rate", 8, window / seconds / 1e6, "M/s");
    seconds = seconds_per_call(both_ways, NULL);
    result("message-rate-both-ways", 8, 2 * window / seconds / 1e6, "M/s");
    for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++)
        result("stream", sizes[which], seconds_per_call(one_after_the_other, &sizes[which]) * 1e6, "us");
    MPI_Finalize();
    return 0;
}
