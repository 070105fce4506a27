/* What another process of the node has not attached to a dynamic window is no part of it, whether there is memory or not
   (MPI 5.0, section 12.2.4): the origin is told so, and nothing is written. Expects all ranks on one node. */
#include "check.h"

enum { PIECE = 64, MANY = 1000, MOST = 70000 };

static MPI_Win win;
/* The right neighbour, and where its memory is. */
static int right;
static MPI_Aint there;

#define REFUSED(call)                                                                               \
    do {                                                                                            \
        int class_ = -1;                                                                            \
        MPI_Error_class((call), &class_);                                                           \
        CHECK(class_ == MPI_ERR_RMA_RANGE, #call " gave class %d", class_);                         \
    } while (0)

/* Tells the left neighbour where the memory is, and learns where that of the right one is. */
static void meet(void *memory)
{
    MPI_Aint here;
    int left = (check_rank + check_size - 1) % check_size;
    right = (check_rank + 1) % check_size;
    MPI_Get_address(memory, &here);
    MPI_Sendrecv(&here, 1, MPI_AINT, left, 0, &there, 1, MPI_AINT, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int put(MPI_Aint place, int value)
{
    return MPI_Put(&value, 1, MPI_INT, right, place, 1, MPI_INT, win);
}

static int get(MPI_Aint place)
{
    int value = -1;
    SUCCEEDS(MPI_Get(&value, 1, MPI_INT, right, place, 1, MPI_INT, win));
    MPI_Win_flush(right, win);
    return value;
}

static void check_all(const int *memory, int count, int expected)
{
    for (int index = 0; index < count; index++)
        CHECK(memory[index] == expected, "integer %d is %d, expected %d", index, memory[index], expected);
}

/* Every kind of access, before, after and across the ends of what is attached. */
static void every_access(void)
{
    int memory[3 * PIECE], value = 5, result = 6, compare = 7, many[2 * PIECE];
    const MPI_Aint bytes = PIECE * sizeof *memory;
    char text[MPI_MAX_ERROR_STRING];
    for (int index = 0; index < 3 * PIECE; index++)
        memory[index] = 7;
    memset(many, 0, sizeof many);
    SUCCEEDS(MPI_Win_attach(win, memory + PIECE, bytes));
    meet(memory);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int end = 0; end < 2; end++) {
        MPI_Aint outside = there + (end ? 2 * bytes : bytes - (MPI_Aint)sizeof *memory);
        REFUSED(put(outside, 1));
        REFUSED(MPI_Get(&result, 1, MPI_INT, right, outside, 1, MPI_INT, win));
        REFUSED(MPI_Accumulate(&value, 1, MPI_INT, right, outside, 1, MPI_INT, MPI_SUM, win));
        REFUSED(MPI_Get_accumulate(&value, 1, MPI_INT, &result, 1, MPI_INT, right, outside, 1, MPI_INT, MPI_REPLACE, win));
        REFUSED(MPI_Fetch_and_op(&value, &result, MPI_INT, right, outside, MPI_SUM, win));
        REFUSED(MPI_Compare_and_swap(&value, &compare, &result, MPI_INT, right, outside, win));
        REFUSED(MPI_Put(many, PIECE, MPI_INT, right, there + (end ? bytes + 2 : bytes - 2), PIECE, MPI_INT, win));
    }
    CHECK_EQUAL(result, 6);
    REFUSED(put(64, 1));
    REFUSED(put(-1, 1));

    MPI_Request request = MPI_REQUEST_NULL;
    REFUSED(MPI_Rput(&value, 1, MPI_INT, right, there, 1, MPI_INT, win, &request));

    /* Only the last of these runs is outside; the others are not written either. */
    MPI_Datatype strided;
    MPI_Type_vector(3, 1, PIECE / 2, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    REFUSED(MPI_Put(many, 3, MPI_INT, right, there + bytes, 1, strided, win));
    MPI_Type_free(&strided);

    int code = put(there, 1), length;
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, "nothing is attached"), "the text is %s", text);
    MPI_Barrier(MPI_COMM_WORLD);
    check_all(memory, 3 * PIECE, 7);
    MPI_Barrier(MPI_COMM_WORLD);

    SUCCEEDS(MPI_Put(many, PIECE, MPI_INT, right, there + bytes, PIECE, MPI_INT, win));
    SUCCEEDS(MPI_Put(many, 0, MPI_INT, right, there, 0, MPI_INT, win));
    MPI_Win_flush(right, win);
    MPI_Barrier(MPI_COMM_WORLD);
    check_all(memory, PIECE, 7);
    check_all(memory + PIECE, PIECE, 0);
    check_all(memory + 2 * PIECE, PIECE, 7);
    MPI_Barrier(MPI_COMM_WORLD);

    /* A run may go on from one piece into the next. */
    SUCCEEDS(MPI_Win_attach(win, memory, bytes));
    MPI_Barrier(MPI_COMM_WORLD);
    SUCCEEDS(MPI_Put(many, 2 * PIECE, MPI_INT, right, there, 2 * PIECE, MPI_INT, win));
    MPI_Win_flush(right, win);
    MPI_Barrier(MPI_COMM_WORLD);
    check_all(memory, 2 * PIECE, 0);
    check_all(memory + 2 * PIECE, PIECE, 7);
    SUCCEEDS(MPI_Win_detach(win, memory));
    SUCCEEDS(MPI_Win_detach(win, memory + PIECE));
    MPI_Barrier(MPI_COMM_WORLD);
    REFUSED(put(there + bytes, 1));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* What has been detached is outside for whoever is told of it, at once, and inside when it is attached again. */
static void again(void)
{
    int memory = 0;
    meet(&memory);
    for (int round = 1; round <= 50; round++) {
        SUCCEEDS(MPI_Win_attach(win, &memory, sizeof memory));
        MPI_Barrier(MPI_COMM_WORLD);
        SUCCEEDS(put(there, round));
        MPI_Win_flush(right, win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQUAL(memory, round);
        SUCCEEDS(MPI_Win_detach(win, &memory));
        MPI_Barrier(MPI_COMM_WORLD);
        REFUSED(put(there, -1));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQUAL(memory, round);
    }
}

/* Many pieces, in no order, and more than a page has room for. */
static void many_pieces(void)
{
    static int memory[2 * MANY];
    meet(memory);
    for (int index = 0; index < MANY; index++) {
        int *piece = memory + 2 * (index * 7 % MANY);
        SUCCEEDS(MPI_Win_attach(win, piece, sizeof *memory));
    }
    SUCCEEDS(MPI_Win_attach(win, memory + 1, 0));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int index = 0; index < 2 * MANY; index++) {
        MPI_Aint place = there + index * (MPI_Aint)sizeof *memory;
        if (index % 2)
            REFUSED(put(place, index));
        else
            SUCCEEDS(put(place, index));
    }
    MPI_Win_flush(right, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int index = 0; index < 2 * MANY; index++)
        CHECK_EQUAL(memory[index], index % 2 ? 0 : index);
    MPI_Barrier(MPI_COMM_WORLD);
    SUCCEEDS(MPI_Win_detach(win, memory + 1));
    for (int index = 0; index < MANY; index++)
        if (index % 3)
            SUCCEEDS(MPI_Win_detach(win, memory + 2 * index));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int index = 0; index < MANY; index++)
        if (index % 3)
            REFUSED(put(there + 2 * index * (MPI_Aint)sizeof *memory, -1));
        else
            CHECK_EQUAL(get(there + 2 * index * (MPI_Aint)sizeof *memory), 2 * index);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int index = 0; index < MANY; index += 3)
        SUCCEEDS(MPI_Win_detach(win, memory + 2 * index));
}

/* Others come and go while a piece is accessed: it is there all the time. */
static void while_others_come_and_go(void)
{
    static int memory[2 * PIECE];
    meet(memory);
    SUCCEEDS(MPI_Win_attach(win, memory + PIECE, sizeof *memory));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < 200; round++) {
        for (int index = 0; index < PIECE; index += 2)
            SUCCEEDS(MPI_Win_attach(win, memory + index, sizeof *memory));
        if (check_rank % 2 == 0) {
            for (int index = 0; index < PIECE; index++) {
                SUCCEEDS(put(there + PIECE * (MPI_Aint)sizeof *memory, round));
                REFUSED(put(there + (PIECE - 1) * (MPI_Aint)sizeof *memory, round));
            }
        }
        for (int index = 0; index < PIECE; index += 2)
            SUCCEEDS(MPI_Win_detach(win, memory + index));
    }
    MPI_Win_flush(right, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_size > 1 && (check_rank + check_size - 1) % check_size % 2 == 0)
        CHECK_EQUAL(memory[PIECE], 199);
    SUCCEEDS(MPI_Win_detach(win, memory + PIECE));
}

/* More pieces than can be told to others: what is attached can be accessed all the same. */
static void very_many_pieces(void)
{
    static char memory[2 * MOST];
    char byte = 9;
    meet(memory);
    for (int index = 0; index < MOST; index++)
        SUCCEEDS(MPI_Win_attach(win, memory + 2 * index, 1));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int index = 0; index < MOST; index += 997)
        SUCCEEDS(MPI_Put(&byte, 1, MPI_CHAR, right, there + 2 * index, 1, MPI_CHAR, win));
    MPI_Win_flush(right, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int index = 0; index < 2 * MOST; index++)
        CHECK_EQUAL(memory[index], index % (2 * 997) ? 0 : 9);
    MPI_Barrier(MPI_COMM_WORLD);
    /* With fewer all is told again. */
    for (int index = MOST - 1; index >= MANY; index--)
        SUCCEEDS(MPI_Win_detach(win, memory + 2 * index));
    MPI_Barrier(MPI_COMM_WORLD);
    REFUSED(MPI_Put(&byte, 1, MPI_CHAR, right, there + 1, 1, MPI_CHAR, win));
    REFUSED(MPI_Put(&byte, 1, MPI_CHAR, right, there + 2 * MANY, 1, MPI_CHAR, win));
    SUCCEEDS(MPI_Put(&byte, 1, MPI_CHAR, right, there + 2 * (MANY - 1), 1, MPI_CHAR, win));
    MPI_Win_flush(right, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int index = 0; index < MANY; index++)
        SUCCEEDS(MPI_Win_detach(win, memory + 2 * index));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    every_access();
    again();
    many_pieces();
    while_others_come_and_go();
    very_many_pieces();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return check_end("window_attached");
}
