/* Memory after start: the sum over all ranks of their proportional set sizes. */
#include "bench.h"

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    double mine = 0, sum = 0;
    char line[256];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %lf", &mine) == 1)
            break;
    if (file)
        fclose(file);
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    char name[64];
    snprintf(name, sizeof name, "memory-%d-ranks", size);
    result(name, 0, sum / 1024, "MiB");
    MPI_Finalize();
    return 0;
}
