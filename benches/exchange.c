/* All pairs at once: every rank exchanges a message with the rank half of the world away. Time of one exchange, the slowest rank's. */
#include "bench.h"

struct exchange {
    unsigned char *out, *in;
    int bytes, partner;
};

static void exchange(void *context)
{
    const struct exchange *it = context;
    MPI_Sendrecv(it->out, it->bytes, MPI_BYTE, it->partner, 0, it->in, it->bytes, MPI_BYTE, it->partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    char name[64];
    snprintf(name, sizeof name, "exchange-%d-ranks", size);
    struct exchange all = {memory(65536), memory(65536), 8, (rank + size / 2) % size};
    result(name, 8, seconds_per_call(exchange, &all) * 1e6, "us");
    all.bytes = 65536;
    result(name, 65536, seconds_per_call(exchange, &all) * 1e6, "us");
    MPI_Finalize();
    return 0;
}
