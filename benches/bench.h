/* What the yardsticks share: a clock, and results as lines `result NAME BYTES VALUE UNIT` on rank 0's standard output. */
#ifndef BENCH_H
#define BENCH_H

#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size;
/* The number of repetitions is divided by this: the command line's last argument, 1 when there is none. */
static int divisor = 1;

static inline void bench_start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (*argc > 1 && atoi((*argv)[*argc - 1]) > 0)
        divisor = atoi((*argv)[*argc - 1]);
}

static inline int repetitions(int count) { return count / divisor > 2 ? count / divisor : 2; }

static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline void result(const char *name, long bytes, double value, const char *unit)
{
    if (rank == 0) {
        printf("result %s %ld %.6g %s\n", name, bytes, value, unit);
        fflush(stdout);
    }
}

/* Work that the compiler cannot remove and that touches no memory. */
static inline uint64_t work(uint64_t value, long steps)
{
    for (long step = 0; step < steps; step++) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    return value;
}

static volatile uint64_t bench_sink;

/* Steps of `work` that take one second on this core, measured for a moment. */
static inline double work_rate(void)
{
    double best = 0;
    for (int round = 0; round < 5; round++) {
        double start = now();
        bench_sink = work(1 + (uint64_t)round, 2000000);
        double rate = 2000000 / (now() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static inline double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[count / 2];
}

#endif
