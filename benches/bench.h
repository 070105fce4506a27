/* What the yardsticks share: a clock, repetition within a time budget, and results as lines on rank 0's standard output:
 *
 *     result NAME BYTES VALUE UNIT        a measured value; BYTES is 0 where no size matters
 *     note NAME TEXT                      why a value is missing
 *
 * The command line's last argument is the time to spend on one value, in milliseconds. */
#ifndef BENCH_H
#define BENCH_H

#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size;
/* Seconds to spend on one value. */
static double budget = 0.05;

static inline void bench_place(int argc, char **argv)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && atof(argv[argc - 1]) > 0)
        budget = atof(argv[argc - 1]) / 1000;
}

static inline void bench_start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    bench_place(*argc, *argv);
}

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

static inline void note(const char *name, const char *text)
{
    if (rank == 0) {
        printf("note %s %s\n", name, text);
        fflush(stdout);
    }
}

/* Memory that has been written once, so that no page is touched for the first time while the clock runs. */
static inline unsigned char *memory(size_t bytes)
{
    unsigned char *data = malloc(bytes);
    if (!data) {
        fprintf(stderr, "rank %d: no memory for %zu bytes\n", rank, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(data, 1, bytes);
    return data;
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

static inline int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static inline double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[count / 2];
}

/* How often something that takes `seconds` fits into the budget, between the limits; every rank is told rank 0's answer. */
static inline int repetitions(double seconds, int least, int most)
{
    double fits = seconds > 0 ? budget / seconds : most;
    int count = fits < least ? least : fits > most ? most : (int)fits;
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return count;
}

/* Seconds that one call takes of each of several operations: the slowest rank's mean, the median of five parts that fill the budget together. The parts of
 * the operations take turns, so that their results can be compared. Every rank calls it; rank 0 has the results. */
static inline void seconds_of_each(int operations, void (*call)(void *), void *const contexts[], double results[])
{
    enum { parts = 5, most = 4 };
    int counts[most];
    double values[most][parts];
    for (int each = 0; each < operations; each++) {
        double once;
        int count = 1, enough;
        call(contexts[each]);
        do {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = now();
            for (int round = 0; round < count; round++)
                call(contexts[each]);
            once = (now() - start) / count;
            enough = once * count > budget / 20 || count >= 1 << 20;
            MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
            count *= 4;
        } while (!enough);
        counts[each] = repetitions(once * parts, 1, 1 << 24);
    }
    for (int part = 0; part < parts; part++)
        for (int each = 0; each < operations; each++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = now();
            for (int round = 0; round < counts[each]; round++)
                call(contexts[each]);
            double mine = (now() - start) / counts[each];
            MPI_Reduce(&mine, &values[each][part], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        }
    for (int each = 0; each < operations; each++)
        results[each] = rank == 0 ? median(values[each], parts) : 0;
}

/* The same of one operation. */
static inline double seconds_per_call(void (*call)(void *), void *context)
{
    double seconds;
    seconds_of_each(1, call, &context, &seconds);
    return seconds;
}

#endif
