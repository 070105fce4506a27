/* What the yardsticks share: a clock, repetition within a time budget, and results as lines on rank 0's standard output:
 *
 *     result NAME BYTES VALUE UNIT        a measured value; BYTES is 0 where no size matters
 *     note NAME TEXT                      why a value is missing
 *
 * The command line's last argument is the time to spend on one value, in milliseconds; behind a colon may follow how long a cache line takes from one core to
 * another when they are near each other, in microseconds (line.c): then two ranks measure while theirs are so near. */
#ifndef BENCH_H
#define BENCH_H

#include <mpi.h>

#include "line.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int rank, size;
/* Seconds to spend on one value. */
static double budget = 0.05;

/* Between the two ranks; NULL: nobody looks. */
static struct line *bench_line;
static unsigned bench_turn;
/* Seconds for a line between near cores; seconds that may still be lost waiting for that; when a measurement began. */
static double bench_near, bench_patience = 15, bench_since;

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

/* Has the two ranks share a line, through a file without a name. */
static inline void bench_share_line(void)
{
    int where[2] = {(int)getpid(), -1}, shared, all;
    char path[64];
    if (rank == 0) {
        where[1] = (int)syscall(SYS_memfd_create, "line", 0);
        if (where[1] >= 0 && ftruncate(where[1], sizeof *bench_line) != 0)
            where[1] = -1;
    }
    MPI_Bcast(where, 2, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", where[0], where[1]);
    int file = open(path, O_RDWR);
    void *memory = mmap(NULL, sizeof *bench_line, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    shared = file >= 0 && memory != MAP_FAILED;
    MPI_Allreduce(&shared, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all)
        bench_line = memory;
    close(file);
    if (rank == 0)
        close(where[1]);
}

/* Whether the ranks' cores are too far from each other for what was measured since the last call, so that it is to be measured again: waits until they are
 * near, but not for ever. Both ranks call it, and get the same answer. */
static inline int disturbed(void)
{
    enum { near = 1, far, hopeless };
    unsigned found = near, state = near;
    if (!bench_line)
        return 0;
    MPI_Barrier(MPI_COMM_WORLD);
    do {
        double seconds = line_seconds(bench_line, (unsigned)rank, &bench_turn);
        if (rank == 0) {
            state = seconds < bench_near * 1.5 ? near : far;
            if (state == far) {
                double time = now();
                bench_patience -= time - bench_since;
                bench_since = time;
                if (bench_patience < 0)
                    state = hopeless;
                else
                    usleep(1000);
            }
            atomic_store_explicit(&bench_line->word, bench_turn + state, memory_order_release);
        } else {
            while ((state = atomic_load_explicit(&bench_line->word, memory_order_acquire) - bench_turn) - near > hopeless - near)
                ;
        }
        if (state != near)
            found = far;
    } while (state == far);
    bench_since = now();
    if (state == hopeless) {
        note("floor-cache-line", "the cores were far from each other for too long: the values that follow were taken nevertheless");
        bench_line = NULL;
    }
    return found == far;
}

static inline void bench_place(int argc, char **argv)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *colon = argc > 1 ? strchr(argv[argc - 1], ':') : NULL;
    if (argc > 1 && atof(argv[argc - 1]) > 0)
        budget = atof(argv[argc - 1]) / 1000;
    if (colon && size == 2) {
        bench_near = atof(colon + 1) * 1e-6;
        bench_share_line();
        bench_since = now();
        disturbed();
    }
}

static inline void bench_start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    bench_place(*argc, *argv);
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
 * the operations take turns, so that their results can be compared. Every rank calls it; rank 0 has the results.
 *
 * Before that the operation is called at least ten times, as long as these fit into twice the budget: after memory was touched first, a copy of 16 MiB
 * takes some ten rounds to become as fast as it stays, also in a program without any library. */
static inline void seconds_of_each(int operations, void (*call)(void *), void *const contexts[], double results[])
{
    enum { parts = 5, most = 4, warm = 10 };
    int counts[most];
    double values[most][parts];
    for (int each = 0; each < operations; each++) {
        double once;
        int count = 1, calls = 1, enough;
        double first = now();
        call(contexts[each]);
        do {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = now();
            for (int round = 0; round < count; round++)
                call(contexts[each]);
            once = (now() - start) / count;
            calls += count;
            enough = (once * count > budget / 20 && (calls >= warm || now() - first > 2 * budget)) || count >= 1 << 20;
            MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
            count *= 4;
        } while (!enough);
        counts[each] = repetitions(once * parts, 1, 1 << 24);
    }
    for (int part = 0; part < parts; part++)
        for (int each = 0; each < operations; each++)
            do {
                MPI_Barrier(MPI_COMM_WORLD);
                double start = now();
                for (int round = 0; round < counts[each]; round++)
                    call(contexts[each]);
                double mine = (now() - start) / counts[each];
                MPI_Reduce(&mine, &values[each][part], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
            } while (disturbed());
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
