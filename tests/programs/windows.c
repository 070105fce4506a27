/* Windows as objects, and their synchronisation (MPI 5.0, chapter 12). */
#include "check.h"

static int rank, size;

/* Whether all ranks share memory. */
static int together(void)
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

static MPI_Win make(int flavor, MPI_Aint bytes, int unit, void **base, MPI_Comm comm)
{
    MPI_Win win;
    switch (flavor) {
    case MPI_WIN_FLAVOR_CREATE:
        *base = bytes ? calloc(1, bytes) : NULL;
        MPI_Win_create(*base, bytes, unit, MPI_INFO_NULL, comm, &win);
        break;
    case MPI_WIN_FLAVOR_ALLOCATE:
        MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, comm, base, &win);
        break;
    case MPI_WIN_FLAVOR_SHARED:
        MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, comm, base, &win);
        break;
    default:
        *base = NULL;
        MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
    }
    return win;
}

static void attributes(int flavor)
{
    void *base, *value;
    int flag, other;
    MPI_Aint bytes = 24 + 8 * rank;
    MPI_Win win = make(flavor, bytes, 8, &base, MPI_COMM_WORLD);
    int dynamic = flavor == MPI_WIN_FLAVOR_DYNAMIC;
    MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag);
    CHECK(flag && value == (dynamic ? MPI_BOTTOM : base), "base %p, %p", value, base);
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag);
    CHECK_EQUAL(*(MPI_Aint *)value, dynamic ? 0 : bytes);
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag);
    CHECK_EQUAL(*(int *)value, dynamic ? 1 : 8);
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag);
    CHECK_EQUAL(*(int *)value, flavor);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag);
    CHECK_EQUAL(*(int *)value, MPI_WIN_UNIFIED);

    MPI_Group of_win, of_world;
    MPI_Win_get_group(win, &of_win);
    MPI_Comm_group(MPI_COMM_WORLD, &of_world);
    MPI_Group_compare(of_win, of_world, &other);
    CHECK_EQUAL(other, MPI_IDENT);
    MPI_Group_free(&of_win);
    MPI_Group_free(&of_world);

    char name[MPI_MAX_OBJECT_NAME] = "?";
    MPI_Win_get_name(win, name, &other);
    CHECK(other == 0 && name[0] == 0, "name %s", name);
    MPI_Win_set_name(win, "box");
    MPI_Win_get_name(win, name, &other);
    CHECK(other == 3 && !strcmp(name, "box"), "name %s", name);
    MPI_Win_get_name(MPI_WIN_NULL, name, &other);
    CHECK(!strcmp(name, "MPI_WIN_NULL"), "name %s", name);

    MPI_Info hints;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "no_locks", "true");
    MPI_Info_set(hints, "colour", "green");
    MPI_Win_set_info(win, hints);
    MPI_Info_free(&hints);
    MPI_Win_get_info(win, &hints);
    MPI_Info_get(hints, "no_locks", sizeof name - 1, name, &flag);
    CHECK(flag && !strcmp(name, "true"), "no_locks %s", name);
    MPI_Info_get(hints, "colour", sizeof name - 1, name, &flag);
    CHECK(!flag, "unknown hints are ignored");
    MPI_Info_free(&hints);

    MPI_Win_free(&win);
    CHECK(win == MPI_WIN_NULL, "the handle is null");
    if (flavor == MPI_WIN_FLAVOR_CREATE)
        free(base);
}

static int deleted;

static int on_delete(MPI_Win win, int key, void *value, void *extra)
{
    (void)win, (void)key;
    deleted += *(int *)value + *(int *)extra;
    return MPI_SUCCESS;
}

static void keys(void)
{
    int key, flag, value = 5, extra = 100, *found;
    void *base;
    MPI_Win win = make(MPI_WIN_FLAVOR_ALLOCATE, 8, 1, &base, MPI_COMM_WORLD);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, &extra);
    MPI_Win_get_attr(win, key, &found, &flag);
    CHECK(!flag, "not set yet");
    MPI_Win_set_attr(win, key, &value);
    MPI_Win_get_attr(win, key, &found, &flag);
    CHECK(flag && found == &value, "set");
    MPI_Win_delete_attr(win, key);
    CHECK_EQUAL(deleted, 105);
    MPI_Win_set_attr(win, key, &value);
    MPI_Win_free_keyval(&key);
    MPI_Win_free(&win);
    CHECK_EQUAL(deleted, 210);
}

static int handled_code;
static MPI_Win handled;

static void on_error(MPI_Win *win, int *code, ...)
{
    handled = *win;
    handled_code = *code;
}

#define FAILS(call, wanted)                                                                         \
    do {                                                                                            \
        int class_ = -1;                                                                            \
        handled_code = MPI_SUCCESS;                                                                 \
        MPI_Error_class((call), &class_);                                                           \
        CHECK(class_ == (wanted), #call " gave class %d, not " #wanted, class_);                    \
        CHECK(handled_code == (wanted) && handled == win, #call " was not handled by the window");  \
    } while (0)

/* Memory of this process that is not attached is no part of a dynamic window, whether it is there or not. */
static void unattached(void)
{
    int value = 1, memory[4] = {0};
    MPI_Aint place;
    MPI_Win win;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_attach(win, memory, 2 * sizeof *memory);
    MPI_Get_address(memory, &place);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    for (int index = 0; index < 4; index++) {
        int code = MPI_Put(&value, 1, MPI_INT, 0, place + index * (MPI_Aint)sizeof value, 1, MPI_INT, win), class;
        MPI_Error_class(code, &class);
        CHECK_EQUAL(class, index < 2 ? MPI_SUCCESS : MPI_ERR_RMA_RANGE);
        CHECK_EQUAL(memory[index], index < 2);
    }
    CHECK(MPI_Accumulate(&value, 1, MPI_INT, 0, 64, 1, MPI_INT, MPI_SUM, win) != MPI_SUCCESS, "address 64 was taken");
    MPI_Win_unlock(0, win);
    MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
}

static void errors(void)
{
    int value = 1, result, none;
    void *base;
    MPI_Win win = make(MPI_WIN_FLAVOR_ALLOCATE, 64, 4, &base, MPI_COMM_WORLD);
    MPI_Errhandler handler, found;
    MPI_Win_get_errhandler(win, &found);
    CHECK(found == MPI_ERRORS_ARE_FATAL, "the handler of a new window");
    MPI_Win_create_errhandler(on_error, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Win_get_errhandler(win, &found);
    CHECK(found == handler, "the handler that was set");
    MPI_Errhandler_free(&found);
    MPI_Errhandler_free(&handler);
    MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
    CHECK(handled == win && handled_code == MPI_ERR_OTHER, "the handler was called");

    FAILS(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_test(win, &none), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock(7, 0, 0, win), MPI_ERR_LOCKTYPE);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), MPI_ERR_RANK);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_fence(MPI_MODE_NOCHECK, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_attach(win, &value, 4), MPI_ERR_RMA_FLAVOR);

    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    FAILS(MPI_Put(&value, 1, MPI_INT, 0, 16, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Put(&value, 1, MPI_INT, 0, -1, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Get(&value, 1, MPI_INT, 0, 0, 17, MPI_INT, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Get(&value, 1, MPI_INT, 0, 0, 2, MPI_INT, win), MPI_ERR_TRUNCATE);
    FAILS(MPI_Put(&value, 1, MPI_INT, 0, 0, 0, MPI_INT, win), MPI_ERR_TRUNCATE);
    FAILS(MPI_Put(&value, -1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
    FAILS(MPI_Put(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win), MPI_ERR_TYPE);
    FAILS(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_MINLOC, win), MPI_ERR_OP);
    FAILS(MPI_Compare_and_swap(&value, &value, &result, MPI_FLOAT, 0, 0, win), MPI_ERR_TYPE);
    MPI_Win_unlock(0, win);
    if (size > 1) {
        int other = 1 - (rank & 1);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        if (other != 0)
            FAILS(MPI_Put(&value, 1, MPI_INT, other, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_EQUAL(MPI_Win_create(&value, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_SIZE);
    CHECK_EQUAL(MPI_Win_create(&value, 4, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
    CHECK_EQUAL(MPI_Win_create(NULL, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_BASE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void shared(int gaps)
{
    int *mine, *first, unit;
    MPI_Aint bytes;
    MPI_Win win;
    MPI_Info hints;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "alloc_shared_noncontig", gaps ? "true" : "false");
    /* Rank 0 gives nothing, if there are others. */
    int count = size > 1 && rank == 0 ? 0 : 3 + rank;
    MPI_Win_allocate_shared(count * sizeof *mine, sizeof *mine, hints, MPI_COMM_WORLD, &mine, &win);
    MPI_Info_free(&hints);
    for (int index = 0; index < count; index++)
        mine[index] = 100 * rank + index;
    MPI_Win_fence(0, win);
    int *next = NULL;
    for (int other = 0; other < size; other++) {
        int *theirs;
        MPI_Win_shared_query(win, other, &bytes, &unit, &theirs);
        int expected = size > 1 && other == 0 ? 0 : 3 + other;
        CHECK_EQUAL(bytes, expected * sizeof *mine);
        CHECK_EQUAL(unit, sizeof *mine);
        CHECK((theirs == NULL) == (expected == 0), "no address where there is no memory");
        CHECK(gaps || !next || theirs == next, "parts follow one another");
        next = theirs ? theirs + expected : NULL;
        for (int index = 0; index < expected; index++)
            CHECK_EQUAL(theirs[index], 100 * other + index);
    }
    MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first);
    CHECK_EQUAL(first[0], size > 1 ? 100 : 0);
    MPI_Win_fence(0, win);
    if (rank == size - 1)
        first[0] = -5;
    MPI_Win_fence(0, win);
    CHECK_EQUAL(first[0], -5);
    MPI_Win_free(&win);
}

/* Everybody puts to its right neighbour, which it tells by post and start. */
static void post_start(int flavor, int rounds, int test)
{
    int *mine, right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Win win = make(flavor, 2 * sizeof *mine, sizeof *mine, (void **)&mine, MPI_COMM_WORLD);
    MPI_Group world, from, to;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &left, &from);
    MPI_Group_incl(world, 1, &right, &to);
    for (int round = 0; round < rounds; round++) {
        int value = 1000 * round + rank, done = 0;
        MPI_Win_post(from, 0, win);
        MPI_Win_start(to, 0, win);
        MPI_Put(&value, 1, MPI_INT, right, 1, 1, MPI_INT, win);
        MPI_Win_complete(win);
        if (test) {
            while (!done)
                MPI_Win_test(win, &done);
        } else {
            MPI_Win_wait(win);
        }
        CHECK_EQUAL(mine[1], 1000 * round + left);
    }
    MPI_Group_free(&from);
    MPI_Group_free(&to);
    MPI_Group_free(&world);
    MPI_Win_free(&win);
    if (flavor == MPI_WIN_FLAVOR_CREATE)
        free(mine);
}

static void many_windows(void)
{
    MPI_Win windows[20];
    int *bases[20];
    for (int index = 0; index < 20; index++) {
        windows[index] = make(MPI_WIN_FLAVOR_ALLOCATE, 5000 * index + 4, 4, (void **)&bases[index], MPI_COMM_WORLD);
        CHECK_EQUAL(*bases[index], 0);
        *bases[index] = 7 * index;
    }
    for (int index = 0; index < 20; index++) {
        int value = -1;
        MPI_Win_lock(MPI_LOCK_SHARED, (rank + 1) % size, 0, windows[index]);
        MPI_Get(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, windows[index]);
        MPI_Win_unlock((rank + 1) % size, windows[index]);
        CHECK(value == 7 * index || value == 0, "value %d", value);
        MPI_Win_free(&windows[index]);
    }
    /* On a communicator of one process. */
    int *base;
    MPI_Win own = make(MPI_WIN_FLAVOR_ALLOCATE, 4, 4, (void **)&base, MPI_COMM_SELF);
    *base = 9;
    int value = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, own);
    MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, own);
    MPI_Win_unlock(0, own);
    CHECK_EQUAL(value, 9);
    MPI_Win_free(&own);
}

int main(int argc, char **argv)
{
    const int flavors[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED,
                           MPI_WIN_FLAVOR_DYNAMIC};
    check_start(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int near = together();
    for (int index = 0; index < 4; index++)
        if (near || flavors[index] != MPI_WIN_FLAVOR_SHARED)
            attributes(flavors[index]);
    keys();
    unattached();
    errors();
    if (near) {
        shared(0);
        shared(1);
    }
    for (int index = 0; index < 2 + near; index++) {
        post_start(flavors[index], 50, 0);
        post_start(flavors[index], 20, 1);
    }
    many_windows();
    return check_end("windows");
}
