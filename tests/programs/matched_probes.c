/* Matched probes: the message that one has taken is received whole, at once or after whatever else comes in between, of every length.
   The argument "threads" lets several threads call. */
#include "check.h"

enum { LONGEST = 200000, WAYS = 9, TAG = 3 };

static char out[LONGEST], in[LONGEST], other[LONGEST];
static int next, before;

static void fill(int seed, int length)
{
    for (int place = 0; place < length; place++)
        out[place] = (char)(seed * 17 + place);
}

static void verify(const char *data, int seed, int length, const MPI_Status *status)
{
    int count;
    SUCCEEDS(MPI_Get_count(status, MPI_BYTE, &count));
    CHECK_EQUAL(count, length);
    CHECK_EQUAL(status->MPI_SOURCE, before);
    for (int place = 0; place < length; place += 1 + length / 100)
        CHECK_EQUAL((unsigned char)data[place], (unsigned char)(seed * 17 + place));
}

/* Sends `count` messages, each when the request of the one before has begun. */
static void send_to_next(int seed, int count, int length, MPI_Request *requests, char *copies)
{
    for (int number = 0; number < count; number++) {
        fill(seed + number, length);
        memcpy(copies + (size_t)number * length, out, length);
        SUCCEEDS(MPI_Isend(copies + (size_t)number * length, length, MPI_BYTE, next, TAG + number, MPI_COMM_WORLD, &requests[number]));
    }
}

static void take(int way, int length, int waits)
{
    MPI_Message first, second, copy;
    MPI_Request requests[3], request;
    MPI_Status status, probed;
    int flag = 0, seed = 100 * way + length, source = waits || way % 2 == 0 ? before : MPI_ANY_SOURCE;
    char *copies = malloc(3 * (size_t)length + 1);
    MPI_Datatype column;
    /* What comes from the same node must not let what comes from another one be forgotten. */
    int partner = (check_rank ^ 1) < check_size ? check_rank ^ 1 : check_rank;
    for (int time = 0; time < 20; time++)
        SUCCEEDS(MPI_Sendrecv(out, 8, MPI_BYTE, partner, 98, other, 8, MPI_BYTE, partner, 98, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    send_to_next(seed, 3, length, requests, copies);
    if (waits)
        SUCCEEDS(MPI_Mprobe(source, TAG, MPI_COMM_WORLD, &first, &probed));
    else
        while (!flag)
            SUCCEEDS(MPI_Improbe(source, TAG, MPI_COMM_WORLD, &flag, &first, &probed));
    CHECK_EQUAL(probed.MPI_TAG, TAG);
    copy = first;
    memset(in, 0, length);
    memset(other, 0, length);
    switch (way) {
    case 0: /* At once. */
    case 1:
        SUCCEEDS(MPI_Mrecv(in, length, MPI_BYTE, &first, &status));
        verify(in, seed, length, &status);
        SUCCEEDS(MPI_Recv(in, length, MPI_BYTE, before, TAG + 1, MPI_COMM_WORLD, &status));
        verify(in, seed + 1, length, &status);
        break;
    case 2: /* After the next one was received, */
        SUCCEEDS(MPI_Recv(other, length, MPI_BYTE, before, TAG + 1, MPI_COMM_WORLD, &status));
        verify(other, seed + 1, length, &status);
        SUCCEEDS(MPI_Mrecv(in, length, MPI_BYTE, &first, &status));
        verify(in, seed, length, &status);
        break;
    case 3: /* by a receive that goes on meanwhile, */
        SUCCEEDS(MPI_Irecv(other, length, MPI_BYTE, before, TAG + 1, MPI_COMM_WORLD, &request));
        SUCCEEDS(MPI_Mrecv(in, length, MPI_BYTE, &first, &status));
        verify(in, seed, length, &status);
        SUCCEEDS(MPI_Wait(&request, &status));
        verify(other, seed + 1, length, &status);
        break;
    case 4: /* taken as well, and received first. */
        SUCCEEDS(MPI_Mprobe(before, TAG + 1, MPI_COMM_WORLD, &second, &probed));
        SUCCEEDS(MPI_Mrecv(other, length, MPI_BYTE, &second, &status));
        verify(other, seed + 1, length, &status);
        SUCCEEDS(MPI_Mrecv(in, length, MPI_BYTE, &first, &status));
        verify(in, seed, length, &status);
        break;
    case 5: /* With collectives, and messages to oneself, in between. */
        SUCCEEDS(MPI_Iprobe(before, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "what was taken is found again");
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        SUCCEEDS(MPI_Sendrecv(out, 8, MPI_BYTE, 0, 99, other, 8, MPI_BYTE, 0, 99, MPI_COMM_SELF, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Imrecv(in, length, MPI_BYTE, &first, &request));
        SUCCEEDS(MPI_Wait(&request, &status));
        verify(in, seed, length, &status);
        SUCCEEDS(MPI_Recv(in, length, MPI_BYTE, before, TAG + 1, MPI_COMM_WORLD, &status));
        break;
    case 6: /* By a type with gaps. */
        SUCCEEDS(MPI_Type_vector(length, 1, 2, MPI_BYTE, &column));
        SUCCEEDS(MPI_Type_commit(&column));
        char *gaps = calloc(2, (size_t)length + 1);
        SUCCEEDS(MPI_Mrecv(gaps, 1, column, &first, &status));
        for (int place = 0; place < length; place++)
            in[place] = gaps[2 * place];
        verify(in, seed, length, &status);
        free(gaps);
        SUCCEEDS(MPI_Type_free(&column));
        SUCCEEDS(MPI_Recv(in, length, MPI_BYTE, before, TAG + 1, MPI_COMM_WORLD, &status));
        break;
    case 7: /* Too long for its buffer. */
        if (length > 0) {
            CHECK_EQUAL(class_of(MPI_Mrecv(in, length - 1, MPI_BYTE, &first, &status)), MPI_ERR_TRUNCATE);
            for (int place = 0; place < length; place++)
                CHECK_EQUAL((unsigned char)in[place], place < length - 1 ? (unsigned char)(seed * 17 + place) : 0);
        } else {
            SUCCEEDS(MPI_Mrecv(in, 0, MPI_BYTE, &first, &status));
        }
        SUCCEEDS(MPI_Recv(in, length, MPI_BYTE, before, TAG + 1, MPI_COMM_WORLD, &status));
        verify(in, seed + 1, length, &status);
        break;
    default: /* While all sleep for a while. */
        sleep_ms(20);
        SUCCEEDS(MPI_Mrecv(in, length, MPI_BYTE, &first, &status));
        verify(in, seed, length, &status);
        SUCCEEDS(MPI_Recv(in, length, MPI_BYTE, before, TAG + 1, MPI_COMM_WORLD, &status));
    }
    CHECK(first == MPI_MESSAGE_NULL, "a message that was received has a handle");
    CHECK_EQUAL(class_of(MPI_Mrecv(in, length, MPI_BYTE, &copy, &status)), MPI_ERR_REQUEST);
    SUCCEEDS(MPI_Recv(in, length, MPI_BYTE, before, TAG + 2, MPI_COMM_WORLD, &status));
    verify(in, seed + 2, length, &status);
    SUCCEEDS(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    free(copies);
}

/* Many are taken before one of them is received. */
static void many(void)
{
    enum { MANY = 3000 };
    static MPI_Message messages[MANY];
    static MPI_Request requests[MANY];
    static int values[MANY];
    MPI_Status status;
    for (int number = 0; number < MANY; number++) {
        int tag = number & 3;
        values[number] = 7 * number + check_rank;
        SUCCEEDS(MPI_Isend(&values[number], 1, MPI_INT, next, tag, MPI_COMM_WORLD, &requests[number]));
    }
    for (int number = 0; number < MANY; number++) {
        int tag = number & 3, source = number & 16 ? MPI_ANY_SOURCE : before;
        SUCCEEDS(MPI_Mprobe(source, tag, MPI_COMM_WORLD, &messages[number], &status));
    }
    for (int number = MANY; number-- > 0;) {
        int value;
        SUCCEEDS(MPI_Mrecv(&value, 1, MPI_INT, &messages[number], &status));
        CHECK_EQUAL(value, 7 * number + before);
    }
    SUCCEEDS(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
}

int main(int argc, char **argv)
{
    static const int lengths[] = {0, 1, 8, 40, 41, 1000, 5000, 20000, LONGEST};
    int provided, threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    SUCCEEDS(MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    next = (check_rank + 1) % check_size;
    before = (check_rank + check_size - 1) % check_size;
    for (size_t place = 0; place < sizeof lengths / sizeof *lengths; place++)
        for (int way = 0; way < WAYS; way++)
            for (int time = 0; time < (way == 8 ? 2 : 10); time++)
                take(way, lengths[place], time % 2);
    many();
    check_end("matched_probes");
    return 0;
}
