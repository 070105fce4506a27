/* What the machine itself can do, without MPI: the floors under the other values. A line to and fro; memory copied by one core, by two together, and by
 * one that the other has just written; memory copied by the kernel as between processes; a process started and waited for.
 * Prints results in the form of bench.h. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { parts = 5, largest = 64 << 20 };

extern char **environ;

static double budget = 0.05;
static int cores[2];
static unsigned char *from, *to;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values)
{
    qsort(values, parts, sizeof *values, compare);
    return values[parts / 2];
}

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Copies `bytes` once by the kernel, as between processes; 0 when it refuses. */
static int kernel_copy(size_t bytes)
{
    struct iovec local = {to, bytes}, remote = {from, bytes};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

static void copy(size_t bytes, int by_kernel)
{
    double values[parts], once = now();
    memcpy(to, from, bytes);
    once = now() - once;
    int count = 1 + (int)(budget / parts / once);
    for (int part = 0; part < parts; part++) {
        double start = now();
        for (int round = 0; round < count; round++) {
            if (by_kernel) {
                if (!kernel_copy(bytes)) {
                    printf("note floor-kernel-copy the kernel refuses process_vm_readv\n");
                    return;
                }
            } else {
                memcpy(to, from, bytes);
                /* The compiler must not take the copies for one. */
                __asm__ volatile("" : : "r"(to) : "memory");
            }
        }
        values[part] = (now() - start) / count;
    }
    printf("result %s %zu %.6g GB/s\n", by_kernel ? "floor-kernel-copy" : "floor-copy", bytes, (double)bytes / median(values) / 1e9);
}

struct half {
    size_t bytes;
    int rounds;
};

static _Atomic int copied;

static void *copy_half(void *context)
{
    struct half *half = context;
    pin(cores[1]);
    for (int round = 0; round < half->rounds; round++) {
        while (atomic_load(&copied) != 2 * round + 1)
            ;
        memcpy(to + half->bytes, from + half->bytes, half->bytes);
        atomic_store(&copied, 2 * round + 2);
    }
    return NULL;
}

static void *write_for_other(void *context)
{
    struct half *half = context;
    pin(cores[1]);
    for (int round = 0; round < half->rounds; round++) {
        while (atomic_load(&copied) != 2 * round + 1)
            ;
        memset(from, round, half->bytes);
        atomic_store(&copied, 2 * round + 2);
    }
    return NULL;
}

static void copy_by_two(size_t bytes)
{
    double values[parts];
    struct half half = {bytes / 2, 3 + (int)(budget / parts / ((double)bytes / 1e10))};
    for (int part = 0; part < parts; part++) {
        pthread_t other;
        atomic_store(&copied, 0);
        pthread_create(&other, NULL, copy_half, &half);
        double start = 0;
        for (int round = 0; round < half.rounds; round++) {
            if (round == 1)
                start = now();
            atomic_store(&copied, 2 * round + 1);
            memcpy(to, from, half.bytes);
            while (atomic_load(&copied) != 2 * round + 2)
                ;
        }
        values[part] = (now() - start) / (half.rounds - 1);
        pthread_join(other, NULL);
    }
    printf("result floor-copy-by-two %zu %.6g GB/s\n", bytes, (double)bytes / median(values) / 1e9);
}

/* One core writes, the other copies to memory that it has not used lately. */
static void copy_after_other(size_t bytes)
{
    double values[parts], seconds = 0;
    struct half half = {bytes, 8};
    for (int part = 0; part < parts; part++) {
        pthread_t other;
        atomic_store(&copied, 0);
        pthread_create(&other, NULL, write_for_other, &half);
        seconds = 0;
        for (int round = 0; round < half.rounds; round++) {
            atomic_store(&copied, 2 * round + 1);
            while (atomic_load(&copied) != 2 * round + 2)
                ;
            double start = now();
            memcpy(to + (size_t)(part * half.rounds + round) * bytes, from, bytes);
            seconds += now() - start;
        }
        values[part] = seconds / half.rounds;
        pthread_join(other, NULL);
    }
    printf("result floor-copy-after-other %zu %.6g GB/s\n", bytes, (double)bytes / median(values) / 1e9);
}

/* Each side writes a line of its own and reads the other's, as who answers a message does: unlike the one line of line.c, it must
 * be taken from the core that still looks at it before it can be written. */
enum { looks = 25, passes = 4000 };

static struct { _Alignas(128) _Atomic int pass; } line[2];
static double passed;

static void *pass_lines(void *context)
{
    int side = context != NULL;
    double start = 0;
    pin(cores[side]);
    for (int pass = 1; pass <= passes; pass++) {
        /* Both are there. */
        if (pass == passes / 10)
            start = now();
        if (side == 0)
            atomic_store_explicit(&line[0].pass, pass, memory_order_release);
        while (atomic_load_explicit(&line[!side].pass, memory_order_acquire) != pass)
            ;
        if (side == 1)
            atomic_store_explicit(&line[1].pass, pass, memory_order_release);
    }
    if (side == 0)
        passed = now() - start;
    return NULL;
}

static void two_lines(void)
{
    double least = 1;
    for (int look = 0; look < looks; look++) {
        pthread_t other;
        atomic_store(&line[0].pass, 0);
        atomic_store(&line[1].pass, 0);
        pthread_create(&other, NULL, pass_lines, &line[1]);
        pass_lines(NULL);
        double seconds = passed / (2 * (passes - passes / 10 + 1));
        least = seconds < least ? seconds : least;
        pthread_join(other, NULL);
    }
    printf("result floor-two-lines 8 %.6g us\n", least * 1e6);
}

static void start_process(void)
{
    double values[parts];
    char *arguments[] = {"/bin/true", NULL};
    for (int part = 0; part < parts; part++) {
        int count = 5;
        double start = now();
        for (int round = 0; round < count; round++) {
            pid_t process;
            if (posix_spawn(&process, arguments[0], NULL, NULL, arguments, environ) != 0) {
                printf("note floor-start /bin/true cannot be started\n");
                return;
            }
            waitpid(process, NULL, 0);
        }
        values[part] = (now() - start) / count;
    }
    printf("result floor-start 0 %.6g ms\n", median(values) * 1e3);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1024, 4096, 65536, 262144, 1048576, 4194304, 16777216, largest};
    cpu_set_t set;
    int found = 0;
    if (argc > 1 && atof(argv[argc - 1]) > 0)
        budget = atof(argv[argc - 1]) / 1000;
    sched_getaffinity(0, sizeof set, &set);
    for (int core = 0; core < CPU_SETSIZE && found < 2; core++)
        if (CPU_ISSET(core, &set))
            cores[found++] = core;
    start_process();
    from = malloc(largest);
    to = malloc(largest);
    if (!from || !to) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    memset(from, 1, largest);
    memset(to, 1, largest);
    pin(cores[0]);
    if (found < 2)
        printf("note floor-copy-by-two needs two cores\n");
    else
        two_lines();
    for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++) {
        copy(sizes[which], 0);
        if (sizes[which] >= 65536) {
            copy(sizes[which], 1);
            if (found == 2)
                copy_by_two(sizes[which]);
            if (found == 2 && sizes[which] <= 1048576)
                copy_after_other(sizes[which]);
        }
    }
    return 0;
}
