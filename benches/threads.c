/* Two threads in each of two ranks, MPI_THREAD_MULTIPLE, each pair of threads with a communicator of its own: exchanges of 8 bytes per second, all threads
 * together. One at a time (MPI_Sendrecv), and in windows of 64. And half a round trip of 8 bytes where one thread of each rank calls, though several might:
 * programs in Python always ask for that. */
#include "bench.h"

#include <pthread.h>

enum { threads = 2, window = 64 };

struct lane {
    MPI_Comm communicator;
    int windowed;
    long exchanges;
    double seconds;
};

/* What rank 0 sends says whether another exchange follows, so that both threads of a pair end together. */
static void *exchange(void *context)
{
    struct lane *lane = context;
    MPI_Request requests[2 * window];
    uint64_t out[window] = {0}, in[window];
    int other = 1 - rank, width = lane->windowed ? window : 1, more = 1;
    double start = now();
    for (lane->exchanges = 0; more; lane->exchanges += width) {
        out[width - 1] = now() - start < budget;
        if (lane->windowed) {
            for (int index = 0; index < window; index++)
                MPI_Irecv(&in[index], 8, MPI_BYTE, other, 0, lane->communicator, &requests[index]);
            for (int index = 0; index < window; index++)
                MPI_Isend(&out[index], 8, MPI_BYTE, other, 0, lane->communicator, &requests[window + index]);
            MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
        } else {
            MPI_Sendrecv(out, 8, MPI_BYTE, other, 0, in, 8, MPI_BYTE, other, 0, lane->communicator, MPI_STATUS_IGNORE);
        }
        more = (int)(rank == 0 ? out[width - 1] : in[width - 1]);
    }
    lane->seconds = now() - start;
    return NULL;
}

static void report(const char *name, struct lane *lanes, int windowed)
{
    double parts[5];
    for (int part = 0; part < 5; part++)
        do {
            pthread_t handles[threads];
            MPI_Barrier(MPI_COMM_WORLD);
            for (int index = 0; index < threads; index++) {
                lanes[index].windowed = windowed;
                pthread_create(&handles[index], NULL, exchange, &lanes[index]);
            }
            parts[part] = 0;
            for (int index = 0; index < threads; index++) {
                pthread_join(handles[index], NULL);
                parts[part] += (double)lanes[index].exchanges / lanes[index].seconds;
            }
        } while (disturbed());
    result(name, 8, median(parts, 5) / 1e6, "M/s");
}

static void to_and_fro(void *context)
{
    char *data = context;
    if (rank == 1)
        MPI_Recv(data, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(data, 8, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(data, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int provided;
    struct lane lanes[threads];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    bench_place(argc, argv);
    if (provided < MPI_THREAD_MULTIPLE) {
        note("thread-exchange-rate", "MPI_THREAD_MULTIPLE is not offered");
    } else {
        char data[8] = {0};
        result("thread-half-round-trip", 8, seconds_per_call(to_and_fro, data) * 5e5, "us");
        for (int index = 0; index < threads; index++)
            MPI_Comm_dup(MPI_COMM_WORLD, &lanes[index].communicator);
        report("thread-exchange-rate", lanes, 0);
        report("thread-exchange-rate-windows", lanes, 1);
        for (int index = 0; index < threads; index++)
            MPI_Comm_free(&lanes[index].communicator);
    }
    MPI_Finalize();
    return 0;
}
