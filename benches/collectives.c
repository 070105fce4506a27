/* Time of one collective, mean over the repetitions of the slowest rank, in several sizes. */
#include "bench.h"

static unsigned char *in, *out;

static void run(int which, int bytes)
{
    int count = bytes / 8;
    switch (which) {
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
    static const int sizes[] = {8, 65536, 1048576};
    bench_start(&argc, &argv);
    size_t largest = (size_t)(size > 4 ? 8 : 1048576) * (size_t)size;
    in = calloc(largest, 1);
    out = calloc(largest, 1);
    for (int which = 0; which < 6; which++)
        for (int index = 0; index < (which == 0 || size > 4 ? 1 : 3); index++) {
            int bytes = sizes[index], count = repetitions(size > 4 ? 100 : bytes == 8 ? 10000 : bytes == 65536 ? 500 : 50);
            double parts[5];
            for (int part = 0; part < 5; part++) {
                run(which, bytes);
                MPI_Barrier(MPI_COMM_WORLD);
                double start = now();
                for (int round = 0; round < count / 5 + 1; round++)
                    run(which, bytes);
                double mine = (now() - start) / (count / 5 + 1), slowest;
                MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
                parts[part] = slowest;
            }
            char name[64];
            snprintf(name, sizeof name, "%s-%d-ranks", names[which], size);
            result(name, which == 0 ? 0 : bytes, median(parts, 5) * 1e6, "us");
        }
    MPI_Finalize();
    return 0;
}
