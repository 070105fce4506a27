/* One-sided communication of rank 0 with the memory of rank 1, in two windows: one whose memory MPI allocated, and one made of memory that was there.
 * put-both, fetch-and-op-both: both ranks access each other's memory at once, and flush. put-fence: both put, and a fence. put-lent: into memory of MPI_Alloc_mem.
 *
 * put, get, accumulate, fetch-and-op, compare-and-swap: 8 B and a flush, within one MPI_Win_lock_all, while rank 1 waits for a message.
 * the same with "-computing": while rank 1 computes, and calls MPI every 2 ms.
 * put-bandwidth, get-bandwidth: one transfer and its flush.
 * lock-unlock: an exclusive lock with nothing in it. fence: of both ranks. */
#include "bench.h"

enum { most = 4 << 20, operations = 5 };

static const char *const names[operations] = {"put", "get", "accumulate", "fetch-and-op", "compare-and-swap"};

struct access {
    MPI_Win win;
    int operation, bytes;
    unsigned char *origin;
};

/* The rank whose memory is accessed. */
static int partner = 1;

static void access_and_flush(void *context)
{
    struct access *access = context;
    static int64_t one = 1, two = 2, seen;
    MPI_Win win = access->win;
    switch (access->operation) {
    case 0: MPI_Put(access->origin, access->bytes, MPI_BYTE, partner, 0, access->bytes, MPI_BYTE, win); break;
    case 1: MPI_Get(access->origin, access->bytes, MPI_BYTE, partner, 0, access->bytes, MPI_BYTE, win); break;
    case 2: MPI_Accumulate(&one, 1, MPI_INT64_T, partner, 0, 1, MPI_INT64_T, MPI_SUM, win); break;
    case 3: MPI_Fetch_and_op(&one, &seen, MPI_INT64_T, partner, 0, MPI_SUM, win); break;
    default: MPI_Compare_and_swap(&two, &one, &seen, MPI_INT64_T, partner, 0, win); break;
    }
    MPI_Win_flush(partner, win);
}

static void lock_and_unlock(void *context)
{
    MPI_Win win = *(MPI_Win *)context;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Win_unlock(1, win);
}

static void fence(void *context)
{
    MPI_Win_fence(0, *(MPI_Win *)context);
}

/* Seconds of one call on rank 0: the median of five parts that fill the budget. No other rank takes part. */
static double seconds_alone(void (*call)(void *), void *context)
{
    enum { parts = 5 };
    double values[parts];
    call(context);
    for (int part = 0; part < parts; part++) {
        long count = 0, step = 1;
        double start = now(), spent;
        do {
            for (long round = 0; round < step; round++)
                call(context);
            count += step;
            spent = now() - start;
            if (spent < budget / 50)
                step *= 2;
        } while (spent < budget / parts);
        values[part] = spent / (double)count;
    }
    return median(values, parts);
}

/* Computes, and asks MPI after every so many steps of work whether rank 0 has finished; without work it waits for that. */
static void compute(long steps)
{
    MPI_Request request;
    int over = 0;
    MPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
    if (!steps)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (uint64_t value = 5; steps && !over; MPI_Test(&request, &over, MPI_STATUS_IGNORE))
        bench_sink = value = work(value, steps);
}

static void put_and_fence(void *context)
{
    struct access *access = context;
    MPI_Put(access->origin, access->bytes, MPI_BYTE, partner, 0, access->bytes, MPI_BYTE, access->win);
    MPI_Win_fence(0, access->win);
}

/* Both at once. */
static void measure_both(MPI_Win win)
{
    static const int sizes[] = {8, 1024, 16384};
    struct access access = {win, 0, 8, memory(16384)};
    partner = 1 - rank;
    for (int which = 0; which < 3; which++) {
        access.bytes = sizes[which];
        MPI_Win_fence(0, win);
        result("put-fence-created", access.bytes, seconds_per_call(put_and_fence, &access) * 1e6, "us");
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        MPI_Win_lock_all(0, win);
        result("put-both-created", access.bytes, seconds_per_call(access_and_flush, &access) * 1e6, "us");
        MPI_Win_unlock_all(win);
    }
    access.operation = 3;
    MPI_Win_lock_all(0, win);
    result("fetch-and-op-both-created", 8, seconds_per_call(access_and_flush, &access) * 1e6, "us");
    MPI_Win_unlock_all(win);
    partner = 1;
    free(access.origin);
}

/* As `measure`, of puts alone. */
static void measure_lent(void)
{
    unsigned char *data;
    MPI_Win win;
    struct access access = {.bytes = 8, .origin = memory(8)};
    MPI_Alloc_mem(most, MPI_INFO_NULL, &data);
    memset(data, 1, most);
    MPI_Win_create(data, most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    access.win = win;
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = 0;
    if (rank == 0) {
        MPI_Win_lock_all(0, win);
        seconds = seconds_alone(access_and_flush, &access);
        MPI_Win_unlock_all(win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    result("put-lent", 8, seconds * 1e9, "ns");
    MPI_Win_free(&win);
    MPI_Free_mem(data);
    free(access.origin);
}

static void measure(const char *kind, MPI_Win win, double rate)
{
    struct access access = {win, 0, 8, memory(most)};
    char name[80];
    for (int computing = 0; computing < 2; computing++)
        for (access.operation = 0; access.operation < operations; access.operation++) {
            double seconds = 0;
            do {
                MPI_Barrier(MPI_COMM_WORLD);
                if (rank == 0) {
                    MPI_Win_lock_all(0, win);
                    seconds = seconds_alone(access_and_flush, &access);
                    MPI_Win_unlock_all(win);
                    MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
                } else {
                    compute(computing ? (long)(0.002 * rate) : 0);
                }
            } while (disturbed());
            snprintf(name, sizeof name, "%s%s-%s", names[access.operation], computing ? "-computing" : "", kind);
            result(name, 8, seconds * 1e9, "ns");
        }
    static const int sizes[] = {4096, 65536, 1048576, most};
    for (access.operation = 0; access.operation < 2; access.operation++)
        for (int which = 0; which < 4; which++) {
            double seconds = 1;
            access.bytes = sizes[which];
            do {
                MPI_Barrier(MPI_COMM_WORLD);
                if (rank == 0) {
                    MPI_Win_lock_all(0, win);
                    seconds = seconds_alone(access_and_flush, &access);
                    MPI_Win_unlock_all(win);
                }
                MPI_Barrier(MPI_COMM_WORLD);
            } while (disturbed());
            snprintf(name, sizeof name, "%s-bandwidth-%s", names[access.operation], kind);
            result(name, access.bytes, access.bytes / seconds / 1e9, "GB/s");
        }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds;
    do {
        seconds = rank == 0 ? seconds_alone(lock_and_unlock, &win) : 0;
        MPI_Barrier(MPI_COMM_WORLD);
    } while (disturbed());
    snprintf(name, sizeof name, "lock-unlock-%s", kind);
    result(name, 0, seconds * 1e9, "ns");
    MPI_Win_fence(0, win);
    seconds = seconds_per_call(fence, &win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    snprintf(name, sizeof name, "fence-%s", kind);
    result(name, 0, seconds * 1e9, "ns");
    free(access.origin);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    double rate = work_rate();
    MPI_Win win;
    unsigned char *data;
    MPI_Win_allocate(most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &data, &win);
    memset(data, 1, most);
    measure("allocated", win, rate);
    MPI_Win_free(&win);
    data = memory(most);
    MPI_Win_create(data, most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    measure("created", win, rate);
    measure_both(win);
    MPI_Win_free(&win);
    free(data);
    measure_lent();
    MPI_Finalize();
    return 0;
}
