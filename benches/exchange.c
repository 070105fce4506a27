/* All pairs at once: every rank exchanges a message with the rank half of the world away, and writes what it sends before each. Time of one exchange, the
 * slowest rank's. Two ranks exchange messages of several lengths: by MPI_Sendrecv, by nonblocking calls, by a nonblocking send that is followed by a blocking
 * receive, and by MPI_Sendrecv_replace. */
#include "bench.h"

enum { largest = 1 << 20 };

struct exchange {
    unsigned char *out, *in;
    int bytes, partner;
};

static void write_and_exchange(void *context)
{
    const struct exchange *it = context;
    memset(it->out, 1, (size_t)it->bytes);
    MPI_Sendrecv(it->out, it->bytes, MPI_BYTE, it->partner, 0, it->in, it->bytes, MPI_BYTE, it->partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void write_and_exchange_nonblocking(void *context)
{
    const struct exchange *it = context;
    MPI_Request requests[2];
    memset(it->out, 1, (size_t)it->bytes);
    MPI_Irecv(it->in, it->bytes, MPI_BYTE, it->partner, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(it->out, it->bytes, MPI_BYTE, it->partner, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void write_and_send_first(void *context)
{
    const struct exchange *it = context;
    MPI_Request request;
    memset(it->out, 1, (size_t)it->bytes);
    MPI_Isend(it->out, it->bytes, MPI_BYTE, it->partner, 0, MPI_COMM_WORLD, &request);
    MPI_Recv(it->in, it->bytes, MPI_BYTE, it->partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void write_and_replace(void *context)
{
    const struct exchange *it = context;
    memset(it->out, 1, (size_t)it->bytes);
    MPI_Sendrecv_replace(it->out, it->bytes, MPI_BYTE, it->partner, 0, it->partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void between_two(void)
{
    static const int sizes[] = {8, 64, 1024, 16384, 65536, 262144, 1048576};
    struct exchange all = {memory(largest), memory(largest), 0, 1 - rank};
    for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++) {
        all.bytes = sizes[which];
        result("exchange", all.bytes, seconds_per_call(write_and_exchange, &all) * 1e6, "us");
        result("exchange-nonblocking", all.bytes, seconds_per_call(write_and_exchange_nonblocking, &all) * 1e6, "us");
        result("exchange-send-first", all.bytes, seconds_per_call(write_and_send_first, &all) * 1e6, "us");
        result("exchange-replace", all.bytes, seconds_per_call(write_and_replace, &all) * 1e6, "us");
    }
}

static void among_many(void)
{
    char name[64];
    snprintf(name, sizeof name, "exchange-%d-ranks", size);
    struct exchange all = {memory(65536), memory(65536), 8, (rank + size / 2) % size};
    result(name, 8, seconds_per_call(write_and_exchange, &all) * 1e6, "us");
    all.bytes = 65536;
    result(name, 65536, seconds_per_call(write_and_exchange, &all) * 1e6, "us");
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    if (size == 2)
        between_two();
    else
        among_many();
    MPI_Finalize();
    return 0;
}
