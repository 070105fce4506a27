/* A cache line passed one way between two pinned cores, when they are as near to each other as they come within two seconds. The other yardsticks measure
 * while two cores are so near. Prints results in the form of bench.h. */
#define _GNU_SOURCE
#include "line.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

enum { looks = 400 };

static int cores[2];
static struct line line;

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void *other_side(void *context)
{
    unsigned turn = 0;
    pin(cores[1]);
    for (int look = 0; look < looks; look++)
        line_seconds(&line, 1, &turn);
    return context;
}

int main(void)
{
    cpu_set_t set;
    pthread_t other;
    unsigned turn = 0;
    int found = 0;
    double least = 1;
    sched_getaffinity(0, sizeof set, &set);
    for (int core = 0; core < CPU_SETSIZE && found < 2; core++)
        if (CPU_ISSET(core, &set))
            cores[found++] = core;
    if (found < 2) {
        printf("note floor-cache-line needs two cores\n");
        return 0;
    }
    pin(cores[0]);
    pthread_create(&other, NULL, other_side, NULL);
    for (int look = 0; look < looks; look++) {
        double seconds = line_seconds(&line, 0, &turn);
        least = seconds < least ? seconds : least;
        usleep(5000);
    }
    pthread_join(other, NULL);
    printf("result floor-cache-line 8 %.6g us\n", least * 1e6);
    return 0;
}
