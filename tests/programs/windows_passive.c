/* One-sided operations take effect while the target computes without calling MPI (MPI 5.0, section 12.7.3); locks exclude. */
#include "check.h"
#include <sched.h>

static int rank, size;

/* Rank 0 computes until everybody else has done its part; only the memory of its window tells it. */
static void target_computes(int created)
{
    enum { ROUNDS = 50 };
    volatile long long *counters;
    MPI_Win win;
    if (created) {
        counters = calloc(2, sizeof *counters);
        MPI_Win_create((void *)counters, 16, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    } else {
        MPI_Win_allocate(16, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &counters, &win);
        counters[0] = counters[1] = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        while (counters[0] < (long long)ROUNDS * (size - 1) || counters[1] == 0)
            sleep_ms(1);
    } else {
        long long one = 1, seen, last = 0;
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Win_lock(round % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win);
            MPI_Fetch_and_op(&one, &seen, MPI_LONG_LONG, 0, 0, MPI_SUM, win);
            MPI_Win_flush(0, win);
            MPI_Get(&last, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, win);
            MPI_Win_unlock(0, win);
            CHECK(last > seen, "%lld after %lld", last, seen);
        }
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Put(&one, 1, MPI_LONG_LONG, 0, 1, 1, MPI_LONG_LONG, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
    if (created)
        free((void *)counters);
}

/* A counter that is raised by a get and a put under the exclusive lock: two at once would lose a count. */
static void locks_exclude(void)
{
    enum { ROUNDS = 200 };
    long long *counter, value;
    MPI_Win win;
    MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &win);
    *counter = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    int target = size - 1;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        MPI_Get(&value, 1, MPI_LONG_LONG, target, 0, 1, MPI_LONG_LONG, win);
        MPI_Win_flush(target, win);
        value++;
        MPI_Put(&value, 1, MPI_LONG_LONG, target, 0, 1, MPI_LONG_LONG, win);
        MPI_Win_unlock(target, win);
        /* All locks at once, beside the exclusive ones of others. */
        if (round % 10 == rank) {
            MPI_Win_lock_all(0, win);
            MPI_Get(&value, 1, MPI_LONG_LONG, target, 0, 1, MPI_LONG_LONG, win);
            MPI_Win_unlock_all(win);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    MPI_Get(&value, 1, MPI_LONG_LONG, target, 0, 1, MPI_LONG_LONG, win);
    MPI_Win_unlock(target, win);
    CHECK_EQUAL(value, (long long)ROUNDS * size);
    MPI_Win_free(&win);
}

/* What a flush has completed is there for whoever looks afterwards: of two ranks that each put a mark, flush, and then get the
 * other's, at least one sees it. */
static void a_flush_completes(void)
{
    enum { ROUNDS = 5000, APART = 64 };
    char *base;
    MPI_Win win;
    MPI_Win_allocate(rank == 0 ? 4 * APART : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (rank == 0)
        memset(base, 0, 4 * APART);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < 2) {
        int missed = 0;
        MPI_Win_lock_all(0, win);
        for (long long round = 1; round <= ROUNDS; round++) {
            long long other = 0;
            /* Both start at once. */
            MPI_Put(&round, 1, MPI_LONG_LONG, 0, (2 + rank) * APART, 1, MPI_LONG_LONG, win);
            for (int tries = 0; other < round; tries++) {
                MPI_Get(&other, 1, MPI_LONG_LONG, 0, (3 - rank) * APART, 1, MPI_LONG_LONG, win);
                MPI_Win_flush(0, win);
                if (tries > 1000)
                    sched_yield();
            }
            MPI_Put(&round, 1, MPI_LONG_LONG, 0, rank * APART, 1, MPI_LONG_LONG, win);
            MPI_Win_flush(0, win);
            MPI_Get(&other, 1, MPI_LONG_LONG, 0, (1 - rank) * APART, 1, MPI_LONG_LONG, win);
            MPI_Win_flush(0, win);
            long long saw = other >= round, partner;
            MPI_Sendrecv(&saw, 1, MPI_LONG_LONG, 1 - rank, 0, &partner, 1, MPI_LONG_LONG, 1 - rank, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            missed += !saw && !partner;
        }
        CHECK_EQUAL(missed, 0);
        MPI_Win_unlock_all(win);
    }
    MPI_Win_free(&win);
}

/* Who waits for a lock sleeps, and receives nevertheless what others send him. */
static void waiting_sleeps(void)
{
    char *base;
    MPI_Win win;
    static char data[1 << 20];
    MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Barrier(MPI_COMM_WORLD);
        /* To somebody who waits for the lock. */
        MPI_Send(data, sizeof data, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        sleep_ms(300);
        MPI_Win_unlock(0, win);
    } else {
        MPI_Request request = MPI_REQUEST_NULL;
        if (rank == 1)
            MPI_Irecv(data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        double before = cpu_seconds();
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        CHECK(cpu_seconds() - before < 0.25, "waiting for a lock took %g s of CPU", cpu_seconds() - before);
        MPI_Win_unlock(0, win);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    target_computes(0);
    target_computes(1);
    locks_exclude();
    a_flush_completes();
    waiting_sleeps();
    return check_end("windows_passive");
}
