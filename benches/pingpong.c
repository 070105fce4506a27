/* Half round trip and bandwidth between two ranks.
 *
 * half-round-trip: the sender writes its one buffer anew each time, and the time includes that.
 * half-round-trip-fresh: the same with other memory for each message on both sides, out of 64 MiB, so that no cache holds it.
 * bandwidth: one message at a time to a receiver that waits, from the call of MPI_Send until both sides have returned; the buffer was written just before. */
#include "bench.h"

enum { largest = 64 << 20 };

struct exchange {
    unsigned char *out, *in;
    size_t offset, step;
    int bytes;
};

static void round_trip(void *context)
{
    struct exchange *exchange = context;
    unsigned char *out = exchange->out + exchange->offset, *in = exchange->in + exchange->offset;
    size_t bytes = (size_t)exchange->bytes;
    if (rank == 0) {
        memset(out, 1, bytes);
        MPI_Send(out, exchange->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(in, exchange->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(in, exchange->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memset(out, 1, bytes);
        MPI_Send(out, exchange->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    exchange->offset += exchange->step;
    if (exchange->offset + bytes > largest)
        exchange->offset = 0;
}

/* Sends from rank 0 to rank 1. Both ranks read one clock, since they are on one machine. Fills `begun` on rank 0, and `ended` on both. */
static void send_each(unsigned char *data, int bytes, int count, double *begun, double *ended)
{
    for (int round = 0; round < count; round++) {
        if (rank == 0) {
            memset(data, round, (size_t)bytes);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            begun[round] = now();
            MPI_Send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        ended[round] = now();
    }
}

static double bytes_per_second(unsigned char *data, int bytes)
{
    enum { most = 500 };
    static double begun[most], ended[most], received[most];
    double start = now();
    send_each(data, bytes, 2, begun, ended);
    int count = repetitions((now() - start) / 2, 7, most);
    do
        send_each(data, bytes, count, begun, ended);
    while (disturbed());
    if (rank == 1)
        MPI_Send(ended, count, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
    if (rank != 0)
        return 0;
    MPI_Recv(received, count, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int round = 0; round < count; round++)
        begun[round] = (received[round] > ended[round] ? received[round] : ended[round]) - begun[round];
    return bytes / median(begun, count);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {0, 8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, largest};
    static const int fresh_sizes[] = {8, 64, 1024, 4096, 16384, 65536, 262144, 1048576};
    bench_start(&argc, &argv);
    unsigned char *out = memory(largest), *in = memory(largest);
    for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++) {
        struct exchange exchange = {out, in, 0, 0, sizes[which]};
        result("half-round-trip", sizes[which], seconds_per_call(round_trip, &exchange) / 2 * 1e6, "us");
    }
    for (size_t which = 0; which < sizeof fresh_sizes / sizeof *fresh_sizes; which++) {
        /* The next message begins at the next line but one, so that it is not this message's neighbour. */
        size_t step = ((size_t)fresh_sizes[which] + 63) / 64 * 64 + 64;
        struct exchange exchange = {out, in, 0, step, fresh_sizes[which]};
        result("half-round-trip-fresh", fresh_sizes[which], seconds_per_call(round_trip, &exchange) / 2 * 1e6, "us");
    }
    for (int bytes = 65536; bytes <= largest; bytes *= 4)
        result("bandwidth", bytes, bytes_per_second(out, bytes) / 1e9, "GB/s");
    MPI_Finalize();
    return 0;
}
