/* Time of one collective, the slowest rank's, in several sizes: on 2 ranks all of them; on more up to 1 MiB where each has a core, and only 8 bytes where
 * they share. A size is what each rank gives to each other one, or to all in a reduction or a broadcast. */
#include "bench.h"

static unsigned char *in, *out;

struct collective {
    int which, bytes;
};

static void run(void *context)
{
    const struct collective *collective = context;
    int count = collective->bytes / 8;
    switch (collective->which) {
    case 0: MPI_Barrier(MPI_COMM_WORLD); break;
    case 1: MPI_Bcast(in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD); break;
    case 2: MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
    case 3: MPI_Allgather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, MPI_COMM_WORLD); break;
    case 4: MPI_Alltoall(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, MPI_COMM_WORLD); break;
    default: MPI_Reduce_scatter_block(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"barrier", "bcast", "allreduce", "allgather", "alltoall", "reduce-scatter"};
    static const int sizes[] = {8, 65536, 1048576, 8388608};
    bench_start(&argc, &argv);
    int last = size <= 2 ? 4 : sysconf(_SC_NPROCESSORS_ONLN) >= size ? 3 : 1;
    size_t largest = (size_t)sizes[last - 1] * (size_t)size;
    in = memory(largest);
    out = memory(largest);
    memset(in, 0, largest);
    for (int which = 0; which < 6; which++)
        for (int index = 0; index < (which == 0 ? 1 : last); index++) {
            struct collective collective = {which, which == 0 ? 0 : sizes[index]};
            char name[64];
            snprintf(name, sizeof name, "%s-%d-ranks", names[which], size);
            result(name, collective.bytes, seconds_per_call(run, &collective) * 1e6, "us");
        }
    MPI_Finalize();
    return 0;
}
