/* How far two cores are from each other: the time that a cache line needs from one to the other. On a virtual machine it may change from one second to the
 * next by a factor of six, as the host moves the cores that it lends, and with it changes nearly everything that two cores do together. */
#ifndef LINE_H
#define LINE_H

#include <stdatomic.h>
#include <time.h>

struct line {
    _Alignas(128) _Atomic unsigned turn;
    /* What side 0 tells side 1. */
    _Alignas(128) _Atomic unsigned word;
};

static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Passes the line to and fro, on sides 0 and 1 at the same time. Seconds one way: the least of five times. `turn` is each side's own, 0 at first. */
static inline double line_seconds(struct line *line, unsigned side, unsigned *turn)
{
    enum { parts = 5, passes = 200 };
    double least = 1;
    for (int part = 0; part < parts; part++) {
        double start = 0;
        for (int pass = 0; pass < passes; pass++) {
            if (pass == passes / 10)
                start = now();
            if (side == 0)
                atomic_store_explicit(&line->turn, *turn + 1, memory_order_release);
            *turn += 2;
            while (atomic_load_explicit(&line->turn, memory_order_acquire) != *turn - side)
                ;
            if (side == 1)
                atomic_store_explicit(&line->turn, *turn, memory_order_release);
        }
        double seconds = (now() - start) / (passes - passes / 10) / 2;
        least = seconds < least ? seconds : least;
    }
    return least;
}

#endif
