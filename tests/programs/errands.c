/* Accesses to created windows, which the kernel carries out, or the target while it waits, or both together, and long ones to allocated windows, which the
 * origin carries out, or both together; which is the fastest is found out as they go. The same results, and each update once, whichever way it went. */
#define _GNU_SOURCE
#include "tool.h"
#include <sched.h>

static int rank, size;

enum { MOST = (4 << 20) + 12345 };
/* So often each way is tried, and more: of short accesses only one in eight says how fast its way is. */
enum { TURNS = 16, SHORT = 32 << 10, SHORT_AGAIN = 8 };

static unsigned char expected_byte(int turn, int at)
{
    return (unsigned char)(turn * 7 + at * 13 + at / 251);
}

/* A window of MOST bytes, allocated or created; its memory. */
static unsigned char *make(int allocated, MPI_Win *win)
{
    unsigned char *memory;
    if (allocated)
        MPI_Win_allocate(MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, win);
    else
        MPI_Win_create(memory = calloc(1, MOST), MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, win);
    return memory;
}

static void end(int allocated, MPI_Win *win, unsigned char *memory)
{
    MPI_Win_free(win);
    if (!allocated)
        free(memory);
}

/* Puts and gets of all sorts of lengths, at odd places; rank 1 waits in a barrier. */
static void lengths(int allocated)
{
    static const int some[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 100, 1000, 4096, 5000,
                               16384, 16385, 40000, 262144, 300001, 1 << 20, MOST - 3};
    enum { LENGTHS = sizeof some / sizeof *some };
    MPI_Win win;
    unsigned char *memory = make(allocated, &win), *data = malloc(MOST), *back = malloc(MOST);
    if (rank == 0) {
        MPI_Win_lock_all(0, win);
        for (int turn = 0; turn < TURNS * LENGTHS; turn++) {
            int length = some[turn % LENGTHS], place = turn % 3;
            for (int at = 0; at < length; at++)
                data[at] = expected_byte(turn, at);
            for (int again = 0; again < (length <= SHORT ? SHORT_AGAIN : 1); again++) {
                data[0] = (unsigned char)(expected_byte(turn, 0) ^ again);
                memset(back, 0, (size_t)length + 1 < MOST ? (size_t)length + 1 : MOST);
                MPI_Put(data, length, MPI_BYTE, 1, place, length, MPI_BYTE, win);
                MPI_Win_flush(1, win);
                MPI_Get(back, length, MPI_BYTE, 1, place, length, MPI_BYTE, win);
                MPI_Win_flush(1, win);
                CHECK(memcmp(back, data, (size_t)length) == 0, "%d bytes came back otherwise", length);
                CHECK(back[length] == 0, "more than %d bytes came", length);
            }
        }
        MPI_Win_unlock_all(win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        int turn = TURNS * LENGTHS - 1, length = some[turn % LENGTHS], place = turn % 3;
        for (int at = 0; at < length; at++)
            CHECK_EQUAL(memory[place + at], expected_byte(turn, at));
    }
    end(allocated, &win, memory);
    free(data);
    free(back);
}

#define UPDATES(TYPE, DATATYPE, OP, START, INPUT, EXPECTED)                                                                                   \
    do {                                                                                                                                      \
        TYPE *memory = malloc(2 * sizeof(TYPE)), input = (INPUT), result = 0;                                                                 \
        MPI_Win win;                                                                                                                          \
        memory[0] = memory[1] = (START);                                                                                                      \
        MPI_Win_create(memory, 2 * sizeof(TYPE), sizeof(TYPE), MPI_INFO_NULL, MPI_COMM_WORLD, &win);                                          \
        if (rank == 0) {                                                                                                                      \
            TYPE value = (START), two[2] = {(INPUT), (INPUT)};                                                                                \
            MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);                                                                                         \
            for (int round = 0; round < 5; round++) {                                                                                         \
                MPI_Fetch_and_op(&input, &result, DATATYPE, 1, 1, OP, win);                                                                   \
                MPI_Win_flush(1, win);                                                                                                        \
                CHECK(result == value, #DATATYPE " " #OP ", round %d", round);                                                                \
                value = (EXPECTED);                                                                                                           \
                MPI_Accumulate(&input, 1, DATATYPE, 1, 1, 1, DATATYPE, OP, win);                                                              \
                value = (EXPECTED);                                                                                                           \
            }                                                                                                                                 \
            MPI_Accumulate(two, 2, DATATYPE, 1, 0, 2, DATATYPE, MPI_REPLACE, win);                                                            \
            MPI_Fetch_and_op(NULL, &result, DATATYPE, 1, 1, MPI_NO_OP, win);                                                                  \
            MPI_Win_unlock(1, win);                                                                                                           \
            CHECK(result == input, #DATATYPE " replaced");                                                                                    \
        }                                                                                                                                     \
        MPI_Barrier(MPI_COMM_WORLD);                                                                                                          \
        MPI_Win_free(&win);                                                                                                                   \
        free(memory);                                                                                                                         \
    } while (0)

static void updates(void)
{
    UPDATES(int8_t, MPI_INT8_T, MPI_SUM, 3, 5, (int8_t)(value + input));
    UPDATES(uint16_t, MPI_UINT16_T, MPI_BXOR, 0x1234, 0x00ff, (uint16_t)(value ^ input));
    UPDATES(int32_t, MPI_INT32_T, MPI_MAX, -7, 12, value > input ? value : input);
    UPDATES(int64_t, MPI_INT64_T, MPI_SUM, 1ll << 40, -3, value + input);
    UPDATES(float, MPI_FLOAT, MPI_SUM, 1.5f, 0.25f, value + input);
    UPDATES(double, MPI_DOUBLE, MPI_PROD, 1.0, 2.0, value * input);
    UPDATES(double, MPI_DOUBLE, MPI_MIN, 8.0, -2.0, value < input ? value : input);
    UPDATES(long double, MPI_LONG_DOUBLE, MPI_SUM, 0.5L, 0.125L, value + input);
}

static void swaps(void)
{
    int64_t *memory = malloc(8);
    MPI_Win win;
    *memory = 10;
    MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank == 0) {
        int64_t next = 11, compare = 10, seen = 0;
        int16_t small = 7, expected = 12, old = 0;
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Compare_and_swap(&next, &compare, &seen, MPI_INT64_T, 1, 0, win);
        MPI_Win_flush(1, win);
        CHECK_EQUAL(seen, 10);
        next = 12;
        MPI_Compare_and_swap(&next, &compare, &seen, MPI_INT64_T, 1, 0, win);
        MPI_Win_flush(1, win);
        CHECK_EQUAL(seen, 11);
        compare = 11;
        MPI_Compare_and_swap(&next, &compare, &seen, MPI_INT64_T, 1, 0, win);
        MPI_Win_flush(1, win);
        CHECK_EQUAL(seen, 11);
        MPI_Compare_and_swap(&small, &expected, &old, MPI_INT16_T, 1, 0, win);
        MPI_Win_unlock(1, win);
        CHECK_EQUAL(old, 12);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        CHECK_EQUAL(*memory, 7);
    MPI_Win_free(&win);
    free(memory);
}

/* All raise the same number; the target raises it too, computes now and then, and waits now and then. Each addition counts once. */
static void many_at_once(void)
{
    enum { ROUNDS = 2000 };
    int64_t *memory = calloc(1, 8), one = 1, seen;
    MPI_Win win;
    MPI_Win_create(memory, 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Fetch_and_op(&one, &seen, MPI_INT64_T, 1, 0, MPI_SUM, win);
        if (rank == 1 && round % 100 == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 0 && round % 100 == 50)
            MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        CHECK_EQUAL(*memory, (int64_t)ROUNDS * size);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    free(memory);
}

/* All access the memory of all others at the same time, so that each asks and is asked, also for what is not short; and now and then some compute. */
static void both_ways(void)
{
    static const int some[] = {1, 8, 32, 33, 100, 1000, 4096, 16384, 16385, 50000};
    enum { LENGTHS = sizeof some / sizeof *some, ROUNDS = 400, PLACE = 60000 };
    int64_t one = 1, seen, *memory = calloc(1, 8 + (size_t)size * PLACE);
    unsigned char *data = malloc(PLACE), *back = malloc(PLACE);
    volatile double work = 0;
    MPI_Win win;
    MPI_Win_create(memory, 8 + (MPI_Aint)size * PLACE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < ROUNDS; round++) {
        int length = some[round % LENGTHS], place = 8 + rank * PLACE + round % 5, to = (rank + 1 + round % (size - 1)) % size;
        for (int at = 0; at < length; at++)
            data[at] = expected_byte(round + rank, at);
        memset(back, 0, (size_t)length + 1);
        MPI_Put(data, length, MPI_BYTE, to, place, length, MPI_BYTE, win);
        MPI_Win_flush(to, win);
        MPI_Fetch_and_op(&one, &seen, MPI_INT64_T, to, 0, MPI_SUM, win);
        MPI_Get(back, length, MPI_BYTE, to, place, length, MPI_BYTE, win);
        MPI_Win_flush(to, win);
        CHECK(memcmp(back, data, (size_t)length) == 0, "%d bytes came back otherwise in round %d", length, round);
        CHECK_EQUAL(back[length], 0);
        CHECK(seen >= 0 && seen < (int64_t)ROUNDS * size, "a counter was %lld", (long long)seen);
        for (int step = 0; round % 50 == rank && step < 20000; step++)
            work = work + step;
    }
    MPI_Win_unlock_all(win);
    int64_t total;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(memory, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQUAL(total, (int64_t)ROUNDS * size);
    MPI_Win_free(&win);
    free(data);
    free(back);
    free(memory);
}

/* Until each of two has carried out half of what the other one asks while it asks as much itself: neither waits for anything else. */
static void serve_each_other(MPI_T_pvar_session session, int length)
{
    enum { ROUNDS = 1000 };
    MPI_Win win;
    unsigned char *memory = make(0, &win), *data = calloc(1, MOST);
    MPI_T_pvar_handle handle = pvar(session, "window_errands", NULL);
    SUCCEEDS(MPI_T_pvar_start(session, handle));
    unsigned long long before = pvar_value(session, handle), served, least = 0;
    for (int series = 0; least < ROUNDS / 2; series++) {
        CHECK(series < 500, "%llu of %d were carried out", least, ROUNDS);
        MPI_Win_lock_all(0, win);
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Put(data, length, MPI_BYTE, 1 - rank, round % 5, length, MPI_BYTE, win);
            MPI_Win_flush(1 - rank, win);
        }
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        served = pvar_value(session, handle) - before;
        before += served;
        MPI_Allreduce(&served, &least, 1, MPI_UNSIGNED_LONG_LONG, MPI_MIN, MPI_COMM_WORLD);
    }
    end(0, &win, memory);
    SUCCEEDS(MPI_T_pvar_handle_free(session, &handle));
    free(data);
}

/* Until the target has carried out so many accesses of a length itself, or with the kernel and the origin. */
static void goes_there(MPI_T_pvar_session session, int allocated, int length, int times)
{
    enum { ROUNDS = 1000, PLACES = 5, LAST_PLACE = (ROUNDS - 1) % PLACES };
    MPI_Win win;
    unsigned char *memory = make(allocated, &win), *data = calloc(1, MOST);
    int over = 0;
    MPI_T_pvar_handle handle = pvar(session, "window_errands", NULL);
    SUCCEEDS(MPI_T_pvar_start(session, handle));
    while (!over) {
        if (rank == 0) {
            MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
            for (int round = 0; round < ROUNDS; round++) {
                for (int at = 0; at < length; at += 509)
                    data[at] = expected_byte(round, at);
                MPI_Put(data, length, MPI_BYTE, 1, round % PLACES, length, MPI_BYTE, win);
                MPI_Win_flush(1, win);
            }
            MPI_Win_unlock(1, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        for (int at = 0; rank == 1 && at < length; at += 509)
            CHECK_EQUAL(memory[LAST_PLACE + at], expected_byte(ROUNDS - 1, at));
        over = rank == 1 && pvar_value(session, handle) >= (uint64_t)times;
        MPI_Bcast(&over, 1, MPI_INT, 1, MPI_COMM_WORLD);
    }
    end(allocated, &win, memory);
    SUCCEEDS(MPI_T_pvar_handle_free(session, &handle));
    free(data);
}

static void go_there(void)
{
    int provided;
    MPI_T_pvar_session session;
    SUCCEEDS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    SUCCEEDS(MPI_T_pvar_session_create(&session));
    if (size == 2) {
        serve_each_other(session, 8);
        serve_each_other(session, 1000);
    }
    goes_there(session, 0, 4, 4);
    goes_there(session, 0, 1000, 4);
    goes_there(session, 0, 100000, 8);
    goes_there(session, 1, 1000000, 4);
    SUCCEEDS(MPI_T_pvar_session_free(&session));
    SUCCEEDS(MPI_T_finalize());
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    lengths(0);
    lengths(1);
    updates();
    swaps();
    many_at_once();
    both_ways();
    /* Ranks that share processors do not wait for each other. */
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) >= size)
        go_there();
    MPI_Finalize();
    if (rank == 0)
        puts("errands: ok");
    return 0;
}
