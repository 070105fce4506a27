/* What one-sided operations do to memory (MPI 5.0, section 12.3), on windows of every flavor. */
#include "check.h"

enum { WORDS = 20000 };

static int rank, size;
/* Windows on a part of what MPI_Alloc_mem gives, at all ranks or at every other one. */
enum { LENT = -1, PARTLY_LENT = -2, SKIPPED = 40 };

static const int flavors[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED,
                              MPI_WIN_FLAVOR_DYNAMIC, LENT, PARTLY_LENT};

/* Whether all ranks share memory. */
static int all_near(void)
{
    char *base;
    MPI_Win win;
    int near = 1;
    MPI_Win_allocate(1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    for (int other = 0; other < size; other++) {
        MPI_Aint bytes;
        int unit;
        MPI_Win_shared_query(win, other, &bytes, &unit, &base);
        near &= bytes == 1;
    }
    MPI_Win_free(&win);
    return near;
}

struct box {
    MPI_Win win;
    int flavor;
    char *base, *block;
    MPI_Aint *bases;
};

static struct box open_box(int flavor, MPI_Aint bytes)
{
    struct box box = {.flavor = flavor};
    box.bases = calloc(size, sizeof *box.bases);
    switch (flavor) {
    case LENT:
    case PARTLY_LENT:
        if (flavor == LENT || rank % 2 == 0) {
            MPI_Alloc_mem(bytes + SKIPPED + 1, MPI_INFO_NULL, &box.block);
            memset(box.block, 0, bytes + SKIPPED + 1);
            box.block[bytes + SKIPPED] = 77;
            box.base = box.block + SKIPPED;
            MPI_Win_create(box.base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &box.win);
            break;
        } /* fall through */
    case MPI_WIN_FLAVOR_CREATE:
        box.base = calloc(1, bytes);
        MPI_Win_create(box.base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &box.win);
        break;
    case MPI_WIN_FLAVOR_ALLOCATE:
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &box.base, &box.win);
        break;
    case MPI_WIN_FLAVOR_SHARED:
        MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &box.base, &box.win);
        break;
    default: {
        MPI_Aint address;
        box.base = calloc(1, bytes);
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &box.win);
        MPI_Win_attach(box.win, box.base, bytes);
        MPI_Get_address(box.base, &address);
        MPI_Allgather(&address, 1, MPI_AINT, box.bases, 1, MPI_AINT, MPI_COMM_WORLD);
    }
    }
    MPI_Win_fence(0, box.win);
    return box;
}

static void close_box(struct box *box)
{
    if (box->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        /* Others may still be at it. */
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_detach(box->win, box->base);
    }
    MPI_Win_free(&box->win);
    if (box->block) {
        CHECK_EQUAL(box->base[-1], 0);
        MPI_Free_mem(box->block);
    } else if (box->flavor == MPI_WIN_FLAVOR_DYNAMIC || box->flavor == MPI_WIN_FLAVOR_CREATE || box->flavor == PARTLY_LENT) {
        free(box->base);
    }
    free(box->bases);
}

static void transfers(int flavor)
{
    struct box box = open_box(flavor, (MPI_Aint)WORDS * 8 * size);
    long long *data = malloc(WORDS * 8), *back = malloc(WORDS * 8);
    int lengths[] = {0, 1, 2, 7, 64, 1000, WORDS};
    for (int which = 0; which < 7; which++) {
        int length = lengths[which];
        fill_bytes(data, length * 8, 17 * rank + which);
        MPI_Win_fence(0, box.win);
        for (int other = 0; other < size; other++)
            MPI_Put(data, length, MPI_LONG_LONG, other, box.bases[other] + rank * WORDS * 8, length * 8, MPI_BYTE,
                    box.win);
        MPI_Win_fence(0, box.win);
        for (int other = 0; other < size; other++)
            CHECK_EQUAL(wrong_byte(box.base + other * WORDS * 8, length * 8, 17 * other + which), -1);
        for (int other = 0; other < size; other++) {
            memset(back, 0, length * 8);
            MPI_Win_lock(MPI_LOCK_SHARED, other, 0, box.win);
            MPI_Get(back, length * 8, MPI_BYTE, other, box.bases[other] + rank * WORDS * 8, length, MPI_LONG_LONG,
                    box.win);
            MPI_Win_unlock(other, box.win);
            CHECK_EQUAL(wrong_byte(back, length * 8, 17 * rank + which), -1);
        }
    }
    free(data);
    free(back);
    close_box(&box);
}

/* Columns of a matrix, from columns and to rows and back, and with requests. */
static void layouts(int flavor)
{
    enum { N = 6 };
    struct box box = open_box(flavor, N * N * sizeof(int));
    int matrix[N][N], other = (rank + 1) % size, left = (rank + size - 1) % size, *window = (int *)box.base;
    MPI_Datatype column, triangle;
    MPI_Type_vector(N, 1, N, MPI_INT, &column);
    MPI_Type_commit(&column);
    int lengths[N], places[N];
    for (int row = 0; row < N; row++) {
        lengths[row] = row + 1;
        places[row] = N * row;
        for (int col = 0; col < N; col++)
            matrix[row][col] = 1000 * rank + 10 * row + col;
    }
    MPI_Type_indexed(N, lengths, places, MPI_INT, &triangle);
    MPI_Type_commit(&triangle);
    MPI_Aint base = box.bases[other];

    MPI_Put(&matrix[0][2], 1, column, other, base + 3 * sizeof(int), 1, column, box.win);
    MPI_Put(&matrix[1][0], N, MPI_INT, other, base + 4 * sizeof(int), 1, column, box.win);
    MPI_Win_fence(0, box.win);
    for (int row = 0; row < N; row++) {
        CHECK_EQUAL(window[N * row + 3], 1000 * left + 10 * row + 2);
        CHECK_EQUAL(window[N * row + 4], 1000 * left + 10 + row);
    }
    MPI_Win_fence(0, box.win);

    MPI_Win_lock_all(0, box.win);
    MPI_Request requests[3];
    int got[N][N] = {{0}}, line[N] = {0};
    MPI_Rput(matrix, 1, triangle, other, base, 1, triangle, box.win, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_flush(other, box.win);
    MPI_Rget(got, 1, triangle, other, base, 1, triangle, box.win, &requests[0]);
    MPI_Rget(line, N, MPI_INT, other, base, 1, column, box.win, &requests[1]);
    MPI_Rget(&got[0][5], 1, MPI_INT, other, base + 5 * sizeof(int), 1, MPI_INT, box.win, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (int row = 0; row < N; row++) {
        CHECK_EQUAL(line[row], 1000 * rank + 10 * row);
        for (int col = 0; col <= row; col++)
            CHECK_EQUAL(got[row][col], 1000 * rank + 10 * row + col);
    }
    CHECK_EQUAL(got[0][5], 0);
    int ones[N];
    for (int row = 0; row < N; row++)
        ones[row] = 1;
    MPI_Accumulate(ones, N, MPI_INT, other, base, 1, column, MPI_SUM, box.win);
    MPI_Win_flush(other, box.win);
    MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, line, N, MPI_INT, other, base, 1, column, MPI_NO_OP, box.win);
    MPI_Win_flush_local(other, box.win);
    for (int row = 0; row < N; row++)
        CHECK_EQUAL(line[row], 1000 * rank + 10 * row + 1);
    MPI_Win_unlock_all(box.win);
    MPI_Type_free(&column);
    MPI_Type_free(&triangle);
    MPI_Win_fence(0, box.win);
    close_box(&box);
}

/* Every operation, with what was there before. */
static void operations(int flavor)
{
    struct {
        MPI_Op op;
        int there, given, expected;
    } cases[] = {{MPI_SUM, 12, 10, 22},   {MPI_PROD, 12, 10, 120}, {MPI_MIN, 12, 10, 10},
                 {MPI_MAX, 12, 10, 12},   {MPI_BAND, 12, 10, 8},   {MPI_BOR, 12, 10, 14},
                 {MPI_BXOR, 12, 10, 6},   {MPI_LAND, 12, 0, 0},    {MPI_LOR, 12, 0, 1},
                 {MPI_LXOR, 12, 10, 0},   {MPI_REPLACE, 12, 10, 10}, {MPI_NO_OP, 12, 10, 12}};
    struct box box = open_box(flavor, 1024);
    int other = (rank + 1) % size;
    MPI_Aint base = box.bases[other];
    for (unsigned which = 0; which < sizeof cases / sizeof *cases; which++) {
        int there = cases[which].there, given = cases[which].given, found = -1;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, box.win);
        for (int way = 0; way < 3; way++) {
            MPI_Put(&there, 1, MPI_INT, other, base, 1, MPI_INT, box.win);
            MPI_Win_flush(other, box.win);
            found = there;
            if (way == 0)
                MPI_Accumulate(&given, 1, MPI_INT, other, base, 1, MPI_INT, cases[which].op, box.win);
            else if (way == 1)
                MPI_Get_accumulate(&given, 1, MPI_INT, &found, 1, MPI_INT, other, base, 1, MPI_INT, cases[which].op,
                                   box.win);
            else
                MPI_Fetch_and_op(&given, &found, MPI_INT, other, base, cases[which].op, box.win);
            MPI_Win_flush(other, box.win);
            CHECK_EQUAL(found, there);
            MPI_Get(&found, 1, MPI_INT, other, base, 1, MPI_INT, box.win);
            MPI_Win_flush(other, box.win);
            CHECK(found == cases[which].expected, "operation %u gave %d", which, found);
        }
        MPI_Win_unlock(other, box.win);
    }
    /* Pairs with gaps in them, in a row and with gaps between them. */
    struct {
        short value;
        int index;
    } pairs[4] = {{5, 1}, {7, 2}, {-3, 3}, {4, 9}}, others[4] = {{6, 7}, {7, 1}, {-8, 8}, {4, 3}}, seen[4];
    short lesser[4] = {5, 7, -8, 4};
    int indices[4] = {1, 1, 8, 3};
    MPI_Datatype spread;
    MPI_Type_vector(4, 1, 2, MPI_SHORT_INT, &spread);
    MPI_Type_commit(&spread);
    for (int gaps = 0; gaps < 2; gaps++) {
        MPI_Datatype datatype = gaps ? spread : MPI_SHORT_INT;
        int count = gaps ? 1 : 4;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, box.win);
        MPI_Put(pairs, 4, MPI_SHORT_INT, other, base, count, datatype, box.win);
        MPI_Win_flush(other, box.win);
        MPI_Accumulate(others, 4, MPI_SHORT_INT, other, base, count, datatype, MPI_MINLOC, box.win);
        MPI_Win_flush(other, box.win);
        MPI_Get_accumulate(others, 4, MPI_SHORT_INT, seen, 4, MPI_SHORT_INT, other, base, count, datatype,
                           MPI_REPLACE, box.win);
        MPI_Win_unlock(other, box.win);
        for (int index = 0; index < 4; index++) {
            CHECK_EQUAL(seen[index].value, lesser[index]);
            CHECK_EQUAL(seen[index].index, indices[index]);
        }
    }
    MPI_Type_free(&spread);
    MPI_Win_fence(0, box.win);
    close_box(&box);
}

/* All ranks update the same places at once. */
static void together(int flavor)
{
    enum { ROUNDS = 300, WIDE = 100 };
    struct box box = open_box(flavor, 4096);
    MPI_Aint base = box.bases[0];
    double halves[WIDE], old[WIDE];
    long long last = -1, one = 1, seen;
    MPI_Datatype every_second;
    MPI_Type_vector(WIDE / 2, 1, 2, MPI_DOUBLE, &every_second);
    MPI_Type_commit(&every_second);
    for (int index = 0; index < WIDE; index++)
        halves[index] = 0.5;
    MPI_Win_fence(0, box.win);
    MPI_Win_lock_all(0, box.win);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Fetch_and_op(&one, &seen, MPI_LONG_LONG, 0, base, MPI_SUM, box.win);
        MPI_Win_flush(0, box.win);
        CHECK(seen > last, "a counter went from %lld to %lld", last, seen);
        last = seen;
        MPI_Accumulate(halves, WIDE, MPI_DOUBLE, 0, base + 1024, WIDE, MPI_DOUBLE, MPI_SUM, box.win);
        /* The same elements one by one, and with gaps: whatever the form of an accumulate, none comes between another's steps. */
        MPI_Accumulate(halves, 1, MPI_DOUBLE, 0, base + 1024, 1, MPI_DOUBLE, MPI_SUM, box.win);
        MPI_Fetch_and_op(halves, old, MPI_DOUBLE, 0, base + 1024 + 8, MPI_SUM, box.win);
        MPI_Get_accumulate(halves, WIDE / 2, MPI_DOUBLE, old, WIDE / 2, MPI_DOUBLE, 0, base + 1024, 1, every_second, MPI_SUM,
                           box.win);
        /* A counter that is raised by adding and by comparing. */
        MPI_Accumulate(&one, 1, MPI_LONG_LONG, 0, base + 8, 1, MPI_LONG_LONG, MPI_SUM, box.win);
        long long expected = 0, wanted, found;
        for (;;) {
            wanted = expected + 2;
            MPI_Compare_and_swap(&wanted, &expected, &found, MPI_LONG_LONG, 0, base + 8, box.win);
            MPI_Win_flush(0, box.win);
            if (found == expected)
                break;
            expected = found;
        }
    }
    MPI_Win_unlock_all(box.win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, box.win);
    MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, halves, WIDE, MPI_DOUBLE, 0, base + 1024, WIDE, MPI_DOUBLE, MPI_NO_OP,
                       box.win);
    MPI_Get(&last, 1, MPI_LONG_LONG, 0, base, 1, MPI_LONG_LONG, box.win);
    MPI_Get(&seen, 1, MPI_LONG_LONG, 0, base + 8, 1, MPI_LONG_LONG, box.win);
    MPI_Win_unlock(0, box.win);
    CHECK_EQUAL(last, (long long)ROUNDS * size);
    CHECK_EQUAL(seen, 3LL * ROUNDS * size);
    for (int index = 0; index < WIDE; index++) {
        int times = 1 + (index < 2) + (index % 2 == 0);
        CHECK(halves[index] == 0.5 * ROUNDS * size * times, "sum %g of element %d", halves[index], index);
    }
    MPI_Type_free(&every_second);
    MPI_Win_fence(0, box.win);
    close_box(&box);
}

static void nobody(void)
{
    struct box box = open_box(MPI_WIN_FLAVOR_ALLOCATE, 8);
    int value = 3, found = 4;
    MPI_Request request;
    MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, box.win);
    MPI_Get(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, box.win);
    MPI_Accumulate(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, box.win);
    MPI_Fetch_and_op(&value, &found, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, box.win);
    MPI_Compare_and_swap(&value, &value, &found, MPI_INT, MPI_PROC_NULL, 0, box.win);
    MPI_Win_fence(0, box.win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, MPI_PROC_NULL, 0, box.win);
    MPI_Rput(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, box.win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(MPI_PROC_NULL, box.win);
    MPI_Win_unlock(MPI_PROC_NULL, box.win);
    CHECK_EQUAL(value, 3);
    CHECK_EQUAL(found, 4);
    close_box(&box);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int near = all_near();
    for (size_t index = 0; index < sizeof flavors / sizeof *flavors; index++) {
        if (!near && flavors[index] == MPI_WIN_FLAVOR_SHARED)
            continue;
        transfers(flavors[index]);
        layouts(flavors[index]);
        operations(flavors[index]);
        together(flavors[index]);
    }
    nobody();
    return check_end("windows_data");
}
