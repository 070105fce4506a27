/* Ranks send each other long messages at the same time, in every way and of lengths about each limit. Each is copied whole before its target hears of it, so
 * its buffer may be written as soon as its send is over; all of it arrives, also beside answers, unexpected, with gaps, and when it is cut off. */
#define _GNU_SOURCE
#include "tool.h"
#include <sched.h>

static int rank, size;

enum { WINDOW = 5, ROOM = 64, MOST = 3 << 20, GAPS = 2, BLOCK = 512 };

static unsigned char *out, *in, *packed;

static unsigned char byte_of(int from, int turn, int at)
{
    return (unsigned char)(from * 101 + turn * 13 + at * 7 + at / 251);
}

static void fill(unsigned char *data, int length, int turn)
{
    for (int at = 0; at < length; at++)
        data[at] = byte_of(rank, turn, at);
}

/* What came from a rank; behind it nothing has changed. */
static void check(const unsigned char *data, int length, int from, int turn)
{
    for (int at = 0; at < length; at++)
        if (data[at] != byte_of(from, turn, at))
            CHECK(0, "byte %d of %d from %d came otherwise in turn %d", at, length, from, turn);
    for (int at = length; at < length + ROOM; at++)
        CHECK_EQUAL(data[at], 0xee);
}

/* MPI_Sendrecv with the neighbours of a ring, which of two ranks are the same one. */
static void both_at_once(int length, int turns)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int turn = 0; turn < turns; turn++) {
        MPI_Status status;
        int count, source = turn % 3 == 2 ? MPI_ANY_SOURCE : left;
        fill(out, length, turn);
        memset(in, 0xee, (size_t)length + ROOM);
        MPI_Sendrecv(out, length, MPI_BYTE, right, turn, in, length + turn % 2, MPI_BYTE, source, turn, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK_EQUAL(count, length);
        CHECK_EQUAL(status.MPI_SOURCE, left);
        check(in, length, left, turn);
    }
}

/* What is received replaces what is sent. */
static void replaced(int length, int turns)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int turn = 0; turn < turns; turn++) {
        MPI_Status status;
        memset(in, 0xee, (size_t)length + ROOM);
        fill(in, length, turn);
        MPI_Sendrecv_replace(in, length, MPI_BYTE, right, turn, left, turn, MPI_COMM_WORLD, &status);
        CHECK_EQUAL(status.MPI_SOURCE, left);
        check(in, length, left, turn);
    }
}

/* The send is started before anything is received, by MPI_Isend or by MPI_Start. */
static void send_first(int length, int turns, int persistent)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request send;
    if (persistent)
        MPI_Send_init(out, length, MPI_BYTE, right, 5, MPI_COMM_WORLD, &send);
    for (int turn = 0; turn < turns; turn++) {
        fill(out, length, turn);
        memset(in, 0xee, (size_t)length + ROOM);
        if (persistent)
            MPI_Start(&send);
        else
            MPI_Isend(out, length, MPI_BYTE, right, 5, MPI_COMM_WORLD, &send);
        MPI_Recv(in, length, MPI_BYTE, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        memset(out, 0x55, length);
        check(in, length, left, turn);
    }
    if (persistent)
        MPI_Request_free(&send);
}

static void isend_first(int length, int turns)
{
    send_first(length, turns, 0);
}

static void start_first(int length, int turns)
{
    send_first(length, turns, 1);
}

/* Several messages each way, of which some are synchronous; their buffer is written when they are over, before those of the other are waited for.
 * `late`: receives are posted after the sends. */
static void in_windows(int length, int messages, int late, int turns)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    size_t room = (size_t)length + ROOM;
    MPI_Request sends[WINDOW], receives[WINDOW];
    for (int turn = 0; turn < turns; turn++) {
        memset(in, 0xee, room * messages);
        for (int message = 0; message < messages; message++)
            fill(out + room * message, length, turn + message);
        for (int step = 0; step < 2; step++)
            for (int message = 0; message < messages; message++)
                if (step == late)
                    MPI_Irecv(in + room * message, length, MPI_BYTE, left, message, MPI_COMM_WORLD, &receives[message]);
                else if ((turn + message) % 4 == 3 && !late)
                    MPI_Issend(out + room * message, length, MPI_BYTE, right, message, MPI_COMM_WORLD, &sends[message]);
                else
                    MPI_Isend(out + room * message, length, MPI_BYTE, right, message, MPI_COMM_WORLD, &sends[message]);
        MPI_Waitall(messages, sends, MPI_STATUSES_IGNORE);
        memset(out, 0x55, room * messages);
        MPI_Waitall(messages, receives, MPI_STATUSES_IGNORE);
        for (int message = 0; message < messages; message++)
            check(in + room * message, length, left, turn + message);
    }
}

/* Out of memory with gaps into such. */
static void with_gaps(int length, int turns)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, blocks = length / BLOCK, whole = blocks * BLOCK;
    MPI_Datatype spread;
    MPI_Type_vector(blocks, BLOCK, GAPS * BLOCK, MPI_BYTE, &spread);
    MPI_Type_commit(&spread);
    for (int turn = 0; turn < turns; turn++) {
        int position = 0;
        fill(packed, whole, turn);
        MPI_Unpack(packed, whole, &position, out, 1, spread, MPI_COMM_WORLD);
        memset(in, 0, (size_t)whole * GAPS);
        MPI_Sendrecv(out, 1, spread, right, turn, in, 1, spread, left, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memset(packed, 0xee, (size_t)whole + ROOM);
        position = 0;
        MPI_Pack(in, 1, spread, packed, whole, &position, MPI_COMM_WORLD);
        check(packed, whole, left, turn);
        for (int block = 0; block < blocks - 1; block++)
            CHECK_EQUAL(in[block * GAPS * BLOCK + BLOCK], 0);
    }
    MPI_Type_free(&spread);
}

/* Rank 0 asks while it awaits the answer, so that it might take each for a part of an exchange. */
static void questions_and_answers(int length, int turns)
{
    for (int turn = 0; turn < turns; turn++) {
        MPI_Request receive;
        fill(out, length, turn);
        memset(in, 0xee, (size_t)length + ROOM);
        if (rank == 0) {
            MPI_Irecv(in, length, MPI_BYTE, 1, turn, MPI_COMM_WORLD, &receive);
            MPI_Send(out, length, MPI_BYTE, 1, turn, MPI_COMM_WORLD);
            MPI_Wait(&receive, MPI_STATUS_IGNORE);
            check(in, length, 1, turn);
        } else if (rank == 1) {
            MPI_Recv(in, length, MPI_BYTE, 0, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, length, MPI_BYTE, 0, turn, MPI_COMM_WORLD);
            check(in, length, 0, turn);
        }
    }
}

/* Of what comes only the first half has room. */
static void cut_off(int length)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, class;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    fill(out, length, 1);
    memset(in, 0xee, (size_t)length + ROOM);
    int code = MPI_Sendrecv(out, length, MPI_BYTE, right, 1, in, length / 2, MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    CHECK_EQUAL(class, MPI_ERR_TRUNCATE);
    check(in, length / 2, left, 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {1000, 2048, 2049, 4097, 10000, 65536, 65537, 131072, 300001, 1 << 20, 2 << 20, (2 << 20) + 1, MOST};
    check_start(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    out = malloc((size_t)WINDOW * (MOST + ROOM));
    in = malloc((size_t)WINDOW * (MOST + ROOM));
    packed = malloc(MOST + ROOM);
    for (size_t which = 0; which < sizeof lengths / sizeof *lengths; which++) {
        int length = lengths[which], turns = length > 500000 ? 3 : 12, window = length > 500000 ? 2 : WINDOW;
        both_at_once(length, turns);
        in_windows(length, 1, 0, turns);
        in_windows(length, window, 0, turns);
        in_windows(length, window, 1, turns);
        questions_and_answers(length, turns);
        with_gaps(length, turns);
        replaced(length, turns);
        isend_first(length, turns);
        start_first(length, turns);
        both_at_once(length, turns);
        cut_off(length);
    }
    /* Where each has a processor all but the first of longer ones are copied, unless none that is so long may be. */
    int provided;
    MPI_T_pvar_session session;
    SUCCEEDS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    SUCCEEDS(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle copied = pvar(session, "sent_chunk_messages", NULL);
    SUCCEEDS(MPI_T_pvar_start(session, copied));
    cpu_set_t mine;
    int alone = argc > 1 && sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) >= size;
    if (getenv("PARNASS_DIRECT_THRESHOLD")) {
        both_at_once(131072, 10);
        CHECK_EQUAL(pvar_value(session, copied), 0);
    } else {
        /* One that has to wait for its processor answers what has come meanwhile: such a series says nothing. */
        static void (*const ways[])(int, int) = {both_at_once, replaced, isend_first, start_first};
        for (int way = 0; way < 4; way++) {
            unsigned long long before = pvar_value(session, copied), count, least = 0;
            for (int series = 0; least < 8 && series < (alone ? 200 : 1); series++) {
                ways[way](131072, 10);
                count = pvar_value(session, copied) - before;
                before += count;
                MPI_Allreduce(&count, &least, 1, MPI_UNSIGNED_LONG_LONG, MPI_MIN, MPI_COMM_WORLD);
            }
            CHECK(!alone || least >= 8, "way %d: %llu of 10 messages were copied whole, in the last of 200 series", way, least);
        }
    }
    SUCCEEDS(MPI_T_pvar_session_free(&session));
    SUCCEEDS(MPI_T_finalize());
    free(out);
    free(in);
    free(packed);
    MPI_Finalize();
    if (rank == 0)
        puts("exchanges: ok");
    return 0;
}
