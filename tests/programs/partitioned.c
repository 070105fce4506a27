/* Partitioned communication: other numbers of partitions on both sides, partitions ready in any order and from many threads,
   operations matched in the order in which they were made, layouts with holes, nobody at the other end, and what is refused. */
#include "check.h"

#include <pthread.h>

enum { MOST = 48 };

static int before, after;

static void expect(int code, int class, const char *words, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, found;
    CHECK(code != MPI_SUCCESS, "%s: no error", what);
    MPI_Error_string(code, text, &length);
    MPI_Error_class(code, &found);
    CHECK(found == class, "%s: class %d, expected %d: %s", what, found, class, text);
    CHECK(strstr(text, words) != NULL, "%s: '%s' does not say '%s'", what, text, words);
}

static int value(int rank, int turn, int index) { return 1000000 * (rank + 1) + 10007 * turn + index; }

static void shuffle(int *order, int count, uint64_t seed)
{
    for (int index = 0; index < count; index++)
        order[index] = index;
    for (int index = count - 1; index > 0; index--) {
        int other = (int)(check_mix(seed + (uint64_t)index) % (uint64_t)(index + 1)), kept = order[index];
        order[index] = order[other];
        order[other] = kept;
    }
}

/* Around the ring: what a partition of the receiver holds is there as soon as it is said to have arrived. */
static void numbers(int parts_out, int parts_in, int each)
{
    int total = parts_out * parts_in * each, *out = malloc(sizeof(int) * (size_t)(total + 1)), *in = malloc(sizeof(int) * (size_t)(total + 1));
    int order[MOST], seen[MOST], flag;
    MPI_Request send, receive;
    MPI_Status status;
    if (check_rank % 2)
        SUCCEEDS(MPI_Precv_init(in, parts_in, total / parts_in, MPI_INT, before, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    SUCCEEDS(MPI_Psend_init(out, parts_out, total / parts_out, MPI_INT, after, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    if (check_rank % 2 == 0)
        SUCCEEDS(MPI_Precv_init(in, parts_in, total / parts_in, MPI_INT, before, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    SUCCEEDS(MPI_Parrived(receive, 0, &flag));
    CHECK(flag, "an inactive request");
    for (int turn = 0; turn < 4; turn++) {
        memset(in, 0, sizeof(int) * (size_t)total);
        for (int index = 0; index < total; index++)
            out[index] = value(check_rank, turn, index);
        if ((check_rank + turn) % 2)
            SUCCEEDS(MPI_Start(&receive));
        SUCCEEDS(MPI_Start(&send));
        if ((check_rank + turn) % 2 == 0)
            SUCCEEDS(MPI_Start(&receive));
        shuffle(order, parts_out, (uint64_t)(100 * turn + check_rank));
        for (int place = 0; place < parts_out; place++) {
            SUCCEEDS(MPI_Pready(order[place], send));
            if (place + 1 < parts_out) {
                SUCCEEDS(MPI_Test(&send, &flag, MPI_STATUS_IGNORE));
                CHECK(!flag, "a send whose partitions are not all ready");
            }
        }
        memset(seen, 0, sizeof seen);
        for (int left = parts_in; left > 0;)
            for (int part = 0; part < parts_in; part++) {
                if (seen[part])
                    continue;
                SUCCEEDS(MPI_Parrived(receive, part, &flag));
                if (!flag)
                    continue;
                int length = total / parts_in;
                for (int index = part * length; index < (part + 1) * length; index++)
                    CHECK_EQUAL(in[index], value(before, turn, index));
                seen[part] = 1;
                left--;
            }
        SUCCEEDS(MPI_Wait(&receive, &status));
        int count;
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK(status.MPI_SOURCE == before && status.MPI_TAG == 5 && count == total, "source %d, tag %d, count %d", status.MPI_SOURCE, status.MPI_TAG, count);
        SUCCEEDS(MPI_Wait(&send, MPI_STATUS_IGNORE));
        CHECK(send != MPI_REQUEST_NULL && receive != MPI_REQUEST_NULL, "they can be started again");
    }
    SUCCEEDS(MPI_Request_free(&send));
    SUCCEEDS(MPI_Request_free(&receive));
    free(out);
    free(in);
}

/* Nothing arrives before it is ready, not even nothing: rank 0 sends, with one barrier after each partition. */
static void one_by_one(int each)
{
    enum { PARTS = 4 };
    int out[PARTS * 3] = {0}, in[PARTS * 3] = {0}, flag;
    MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL;
    int last = check_size - 1;
    if (check_rank == 0) {
        SUCCEEDS(MPI_Psend_init(out, PARTS, each, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
        SUCCEEDS(MPI_Start(&send));
    }
    if (check_rank == last) {
        SUCCEEDS(MPI_Precv_init(in, PARTS, each, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
        SUCCEEDS(MPI_Start(&receive));
    }
    for (int part = 0; part < PARTS; part++) {
        if (check_rank == last)
            for (int other = 0; other < PARTS; other++) {
                if (other < part) {
                    do
                        SUCCEEDS(MPI_Parrived(receive, other, &flag));
                    while (!flag);
                } else {
                    SUCCEEDS(MPI_Parrived(receive, other, &flag));
                    CHECK(!flag, "partition %d before it is ready", other);
                }
            }
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank == 0) {
            for (int index = 0; index < each; index++)
                out[part * each + index] = value(0, 0, part * each + index);
            SUCCEEDS(MPI_Pready_range(part, part, send));
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (check_rank == last) {
        SUCCEEDS(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        for (int index = 0; index < PARTS * each; index++)
            CHECK_EQUAL(in[index], value(0, 0, index));
        SUCCEEDS(MPI_Request_free(&receive));
    }
    if (check_rank == 0) {
        SUCCEEDS(MPI_Wait(&send, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Request_free(&send));
    }
}

/* Several with one tag: the first made belongs to the first made, whatever is started first, and other messages are not touched. */
static void in_order(void)
{
    enum { MANY = 5 };
    int out[MANY][4] = {{0}}, in[MANY][4] = {{0}}, plain = check_rank, got;
    MPI_Request sends[MANY], receives[MANY], ordinary;
    SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, before, 9, MPI_COMM_WORLD, &ordinary));
    for (int which = 0; which < MANY; which++)
        SUCCEEDS(MPI_Psend_init(out[which], 2, 2, MPI_INT, after, which == 2 ? 8 : 9, MPI_COMM_WORLD, MPI_INFO_NULL, &sends[which]));
    SUCCEEDS(MPI_Send(&plain, 1, MPI_INT, after, 9, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Wait(&ordinary, MPI_STATUS_IGNORE));
    CHECK_EQUAL(got, before);
    /* The one with the other tag is made first here. */
    SUCCEEDS(MPI_Precv_init(in[2], 1, 4, MPI_INT, before, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &receives[2]));
    for (int which = 0; which < MANY; which++)
        if (which != 2)
            SUCCEEDS(MPI_Precv_init(in[which], 4, 1, MPI_INT, before, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &receives[which]));
    for (int turn = 0; turn < 3; turn++) {
        int order[MANY];
        for (int which = 0; which < MANY; which++)
            for (int index = 0; index < 4; index++)
                out[which][index] = value(check_rank, turn, 10 * which + index);
        shuffle(order, MANY, (uint64_t)(turn + 3 * check_rank));
        for (int place = 0; place < MANY; place++) {
            int both[2] = {1, 0};
            SUCCEEDS(MPI_Start(&sends[order[place]]));
            SUCCEEDS(MPI_Pready_list(2, both, sends[order[place]]));
            SUCCEEDS(MPI_Start(&receives[order[MANY - 1 - place]]));
        }
        SUCCEEDS(MPI_Waitall(MANY, receives, MPI_STATUSES_IGNORE));
        SUCCEEDS(MPI_Waitall(MANY, sends, MPI_STATUSES_IGNORE));
        for (int which = 0; which < MANY; which++)
            for (int index = 0; index < 4; index++)
                CHECK_EQUAL(in[which][index], value(before, turn, 10 * which + index));
    }
    for (int which = 0; which < MANY; which++) {
        SUCCEEDS(MPI_Request_free(&sends[which]));
        SUCCEEDS(MPI_Request_free(&receives[which]));
    }
}

/* Columns leave and arrive as triples with a gap; the partitions of the two sides cut in the middle of each other's elements. */
static void layouts(void)
{
    enum { ELEMENTS = 30 };
    int out[2 * ELEMENTS] = {0}, in[ELEMENTS / 3 * 4] = {0};
    MPI_Datatype column, triple, spaced;
    MPI_Request requests[2];
    SUCCEEDS(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &column));
    SUCCEEDS(MPI_Type_commit(&column));
    SUCCEEDS(MPI_Type_contiguous(3, MPI_INT, &triple));
    SUCCEEDS(MPI_Type_create_resized(triple, 0, 4 * sizeof(int), &spaced));
    SUCCEEDS(MPI_Type_commit(&spaced));
    SUCCEEDS(MPI_Psend_init(out, 15, 2, column, after, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    SUCCEEDS(MPI_Precv_init(in, 5, 2, spaced, before, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    SUCCEEDS(MPI_Type_free(&column));
    SUCCEEDS(MPI_Type_free(&triple));
    SUCCEEDS(MPI_Type_free(&spaced));
    for (int turn = 0; turn < 3; turn++) {
        for (int index = 0; index < ELEMENTS; index++)
            out[2 * index] = value(check_rank, turn, index);
        memset(in, 0xff, sizeof in);
        SUCCEEDS(MPI_Startall(2, requests));
        SUCCEEDS(MPI_Pready_range(0, 14, requests[0]));
        SUCCEEDS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int index = 0; index < ELEMENTS; index++) {
            int place = index / 3 * 4 + index % 3;
            CHECK_EQUAL(in[place], value(before, turn, index));
        }
        for (int index = 3; index < ELEMENTS / 3 * 4; index += 4)
            CHECK_EQUAL(in[index], -1);
    }
    SUCCEEDS(MPI_Request_free(&requests[0]));
    SUCCEEDS(MPI_Request_free(&requests[1]));
}

enum { THREADS = 4, PER_THREAD = 8, LONG = 5000 };

struct work {
    int number, turn, *out, *in;
    MPI_Request send, receive;
};

static void *fill_and_send(void *given)
{
    const struct work *work = given;
    for (int place = 0; place < PER_THREAD; place++) {
        int part = place * THREADS + work->number;
        for (int index = part * LONG; index < (part + 1) * LONG; index++)
            work->out[index] = value(check_rank, work->turn, index);
        SUCCEEDS(MPI_Pready(part, work->send));
    }
    return NULL;
}

static void *take_and_check(void *given)
{
    const struct work *work = given;
    /* Half as many partitions, twice as long. */
    for (int part = work->number; part < THREADS * PER_THREAD / 2; part += THREADS) {
        int flag = 0;
        while (!flag)
            SUCCEEDS(MPI_Parrived(work->receive, part, &flag));
        for (int index = 2 * part * LONG; index < 2 * (part + 1) * LONG; index += 7)
            CHECK_EQUAL(work->in[index], value(before, work->turn, index));
    }
    return NULL;
}

static void *wait_for(void *given)
{
    SUCCEEDS(MPI_Wait(given, MPI_STATUS_IGNORE));
    return NULL;
}

static void threads(void)
{
    size_t bytes = sizeof(int) * LONG * THREADS * PER_THREAD;
    struct work work[THREADS];
    int *out = calloc(1, bytes), *in = calloc(1, bytes);
    MPI_Request send, receive;
    SUCCEEDS(MPI_Psend_init(out, THREADS * PER_THREAD, LONG, MPI_INT, after, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    SUCCEEDS(MPI_Precv_init(in, THREADS * PER_THREAD / 2, 2 * LONG, MPI_INT, before, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    for (int turn = 0; turn < 6; turn++) {
        pthread_t ids[2 * THREADS], waiter;
        SUCCEEDS(MPI_Start(&send));
        SUCCEEDS(MPI_Start(&receive));
        /* Somebody waits for the send while others say what is ready. */
        CHECK(pthread_create(&waiter, NULL, wait_for, &send) == 0, "a thread");
        MPI_Request copy = send;
        for (int number = 0; number < THREADS; number++) {
            work[number] = (struct work){number, turn, out, in, copy, receive};
            CHECK(pthread_create(&ids[number], NULL, fill_and_send, &work[number]) == 0, "a thread");
            CHECK(pthread_create(&ids[THREADS + number], NULL, take_and_check, &work[number]) == 0, "a thread");
        }
        for (int number = 0; number < 2 * THREADS; number++)
            pthread_join(ids[number], NULL);
        pthread_join(waiter, NULL);
        SUCCEEDS(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    }
    SUCCEEDS(MPI_Request_free(&send));
    SUCCEEDS(MPI_Request_free(&receive));
    free(out);
    free(in);
}

/* To nobody and from nobody; to itself; made on a communicator that is freed; made and never started. */
static void edges(void)
{
    int out[6] = {1, 2, 3, 4, 5, 6}, in[6] = {0}, flag;
    MPI_Request requests[2], unused;
    MPI_Status statuses[2];
    SUCCEEDS(MPI_Psend_init(out, 3, 2, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    SUCCEEDS(MPI_Precv_init(in, 3, 2, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    SUCCEEDS(MPI_Startall(2, requests));
    SUCCEEDS(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
    CHECK(!flag, "nothing is ready");
    SUCCEEDS(MPI_Pready_range(0, 2, requests[0]));
    SUCCEEDS(MPI_Parrived(requests[1], 2, &flag));
    CHECK(flag, "from nobody everything is there");
    SUCCEEDS(MPI_Waitall(2, requests, statuses));
    CHECK(statuses[1].MPI_SOURCE == MPI_PROC_NULL && statuses[1].MPI_TAG == MPI_ANY_TAG && in[0] == 0, "nothing came");
    SUCCEEDS(MPI_Request_free(&requests[0]));
    SUCCEEDS(MPI_Request_free(&requests[1]));
    SUCCEEDS(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag));
    CHECK(flag, "no request");

    MPI_Comm own;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_SELF, &own));
    SUCCEEDS(MPI_Psend_init(out, 3, 2, MPI_INT, 0, 1, own, MPI_INFO_NULL, &unused));
    SUCCEEDS(MPI_Request_free(&unused));
    SUCCEEDS(MPI_Precv_init_c(in, 3, 2, MPI_INT, 0, 1, own, MPI_INFO_NULL, &unused));
    SUCCEEDS(MPI_Request_free(&unused));
    SUCCEEDS(MPI_Precv_init_c(in, 1, 6, MPI_INT, 0, 1, own, MPI_INFO_NULL, &requests[1]));
    SUCCEEDS(MPI_Start(&requests[1]));
    SUCCEEDS(MPI_Psend_init_c(out, 6, 1, MPI_INT, 0, 1, own, MPI_INFO_NULL, &requests[0]));
    SUCCEEDS(MPI_Comm_free(&own));
    SUCCEEDS(MPI_Start(&requests[0]));
    SUCCEEDS(MPI_Pready_range(0, 5, requests[0]));
    SUCCEEDS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(memcmp(in, out, sizeof in) == 0, "to itself");
    SUCCEEDS(MPI_Request_free(&requests[0]));
    SUCCEEDS(MPI_Request_free(&requests[1]));
}

/* Receives that nobody ever sends to are freed, and with them their communicators: there are fewer contexts than turns. Where a
   sender comes all the same, its first send is for the receive that was freed. */
static void never_matched(void)
{
    enum { TURNS = 40000 };
    int out[2][2] = {{1, 2}, {3, 4}}, in[2] = {0};
    MPI_Request receive, sends[2];
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Comm own;
        int code = MPI_Comm_dup(MPI_COMM_SELF, &own);
        CHECK(code == MPI_SUCCESS, "no communicator after %d whose receives were freed", turn);
        SUCCEEDS(MPI_Precv_init(in, 1, 2, MPI_INT, 0, 1, own, MPI_INFO_NULL, &receive));
        SUCCEEDS(MPI_Request_free(&receive));
        if (turn % 1000 == 0) {
            SUCCEEDS(MPI_Precv_init(in, 2, 1, MPI_INT, 0, 1, own, MPI_INFO_NULL, &receive));
            for (int which = 0; which < 2; which++)
                SUCCEEDS(MPI_Psend_init(out[which], 1, 2, MPI_INT, 0, 1, own, MPI_INFO_NULL, &sends[which]));
            SUCCEEDS(MPI_Start(&receive));
            SUCCEEDS(MPI_Start(&sends[1]));
            SUCCEEDS(MPI_Pready(0, sends[1]));
            SUCCEEDS(MPI_Wait(&sends[1], MPI_STATUS_IGNORE));
            SUCCEEDS(MPI_Wait(&receive, MPI_STATUS_IGNORE));
            CHECK(in[0] == 3 && in[1] == 4, "%d and %d came", in[0], in[1]);
            SUCCEEDS(MPI_Request_free(&sends[0]));
            SUCCEEDS(MPI_Request_free(&sends[1]));
            SUCCEEDS(MPI_Request_free(&receive));
        }
        SUCCEEDS(MPI_Comm_free(&own));
    }
}

static void refusals(void)
{
    int out[4] = {0}, in[4], flag, list[2] = {0, 7};
    MPI_Request send, receive, plain;
    MPI_Comm own;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_SELF, &own));
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    expect(MPI_Psend_init(out, -1, 1, MPI_INT, 0, 1, own, MPI_INFO_NULL, &send), MPI_ERR_ARG, "partitions", "a negative number");
    expect(MPI_Psend_init(out, 1, -1, MPI_INT, 0, 1, own, MPI_INFO_NULL, &send), MPI_ERR_COUNT, "count", "a negative count");
    expect(MPI_Psend_init(out, 1, 1, MPI_INT, 1, 1, own, MPI_INFO_NULL, &send), MPI_ERR_RANK, "dest", "a wrong rank");
    expect(MPI_Precv_init(in, 1, 1, MPI_INT, MPI_ANY_SOURCE, 1, own, MPI_INFO_NULL, &receive), MPI_ERR_RANK, "dest", "from anybody");
    expect(MPI_Precv_init(in, 1, 1, MPI_INT, 0, MPI_ANY_TAG, own, MPI_INFO_NULL, &receive), MPI_ERR_TAG, "tag", "any tag");
    SUCCEEDS(MPI_Psend_init(out, 2, 2, MPI_INT, 0, 1, own, MPI_INFO_NULL, &send));
    SUCCEEDS(MPI_Precv_init(in, 2, 2, MPI_INT, 0, 1, own, MPI_INFO_NULL, &receive));
    expect(MPI_Pready(0, send), MPI_ERR_REQUEST, "MPI_Start", "ready before the start");
    SUCCEEDS(MPI_Start(&send));
    SUCCEEDS(MPI_Start(&receive));
    expect(MPI_Start(&send), MPI_ERR_REQUEST, "active", "started twice");
    expect(MPI_Pready(2, send), MPI_ERR_ARG, "0 to 1", "no such partition");
    expect(MPI_Pready_list(2, list, send), MPI_ERR_ARG, "7", "no such partition in a list");
    expect(MPI_Pready_range(1, 0, send), MPI_ERR_ARG, "partition_low", "a range backwards");
    expect(MPI_Pready(0, receive), MPI_ERR_REQUEST, "MPI_Psend_init", "a receive that is ready");
    expect(MPI_Parrived(send, 0, &flag), MPI_ERR_REQUEST, "MPI_Precv_init", "a send that arrives");
    expect(MPI_Parrived(receive, -1, &flag), MPI_ERR_ARG, "0 to 1", "no such partition");
    SUCCEEDS(MPI_Pready(0, send));
    expect(MPI_Pready(0, send), MPI_ERR_REQUEST, "before", "ready twice");
    expect(MPI_Cancel(&send), MPI_ERR_REQUEST, "cancelled", "a cancellation");
    SUCCEEDS(MPI_Pready(1, send));
    SUCCEEDS(MPI_Wait(&send, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Request_free(&send));
    SUCCEEDS(MPI_Request_free(&receive));
    SUCCEEDS(MPI_Irecv(in, 1, MPI_INT, 0, 3, own, &plain));
    expect(MPI_Pready(0, plain), MPI_ERR_REQUEST, "partitioned", "an ordinary request");
    SUCCEEDS(MPI_Send(out, 1, MPI_INT, 0, 3, own));
    SUCCEEDS(MPI_Wait(&plain, MPI_STATUS_IGNORE));

    /* The two sides do not agree. */
    SUCCEEDS(MPI_Psend_init(out, 2, 2, MPI_INT, 0, 1, own, MPI_INFO_NULL, &send));
    SUCCEEDS(MPI_Precv_init(in, 1, 3, MPI_INT, 0, 1, own, MPI_INFO_NULL, &receive));
    SUCCEEDS(MPI_Start(&receive));
    expect(MPI_Wait(&receive, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "16 bytes in 2 partitions", "too little room");
    SUCCEEDS(MPI_Request_free(&receive));
    SUCCEEDS(MPI_Request_free(&send));
    SUCCEEDS(MPI_Comm_free(&own));
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK_EQUAL(provided, MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    before = (check_rank + check_size - 1) % check_size;
    after = (check_rank + 1) % check_size;
    for (int parts_out = 1; parts_out <= 7; parts_out += 2)
        for (int parts_in = 1; parts_in <= 7; parts_in += 3)
            numbers(parts_out, parts_in, 3);
    numbers(MOST, 1, 100);
    numbers(1, MOST, 100);
    numbers(3, 2, 100000);
    numbers(5, 4, 0);
    one_by_one(3);
    one_by_one(0);
    in_order();
    layouts();
    threads();
    edges();
    never_matched();
    refusals();
    return check_end("partitioned");
}
