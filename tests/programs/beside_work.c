/* Ranks that send each other long messages, compute, and wait for them then. Where there is no processor to spare, the helper thread of a rank takes its
 * time: it is left asleep as long as whoever waits can move all himself. The bytes arrive. */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>

enum { LENGTH = 1000003, TIMES = 100, SERIES = 20 };

static void work(double seconds)
{
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;)
        ;
}

/* Exchanges with both neighbours: how often a thread of this rank goes to sleep meanwhile, as its helper does whenever it was woken. */
static long sleeps_in_exchanges(unsigned char *in, unsigned char *out)
{
    int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    long slept = sleeps();
    for (int time = 0; time < TIMES; time++) {
        MPI_Request requests[2];
        fill_bytes(out, LENGTH, (uint64_t)(check_rank * TIMES + time));
        SUCCEEDS(MPI_Irecv(in, LENGTH, MPI_BYTE, before, 0, MPI_COMM_WORLD, &requests[0]));
        SUCCEEDS(MPI_Isend(out, LENGTH, MPI_BYTE, next, 0, MPI_COMM_WORLD, &requests[1]));
        /* One of them is late now and then. */
        work(3e-4 * (1 + (check_rank + time) % 3 / 2));
        SUCCEEDS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK_EQUAL(wrong_byte(in, LENGTH, (uint64_t)(before * TIMES + time)), -1);
    }
    return sleeps() - slept;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    unsigned char *in = malloc(LENGTH), *out = malloc(LENGTH);
    cpu_set_t mine;
    const char *direct = getenv("PARNASS_DIRECT");
    int each_has_one = sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) == check_size && !(direct && strcmp(direct, "off") == 0);
    /* A series in which a rank has lost its processor says nothing. */
    long most = TIMES + 1;
    for (int series = 0; most > TIMES && series < (each_has_one ? SERIES : 1); series++) {
        long slept = sleeps_in_exchanges(in, out);
        SUCCEEDS(MPI_Allreduce(&slept, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD));
    }
    CHECK(!each_has_one || most <= TIMES, "threads of a rank went to sleep %ld times in the last of %d series of %d exchanges", most, SERIES, TIMES);
    free(in);
    free(out);
    return check_end("beside_work");
}
