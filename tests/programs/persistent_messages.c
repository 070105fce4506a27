/* Persistent sends and receives: every way to complete them, of every length, alone and among other requests; statuses, errors, what is
   cancelled, freed or refused. The argument "threads" lets several threads call. */
#include "check.h"

enum { MANY = 12, LONGEST = 300000, WAYS = 9 };

static char out[MANY][LONGEST], in[MANY][LONGEST];
static int next, before;

/* Completes all active ones of a list of requests, in one of several ways; a status for each, by its index. */
static void complete(int way, int count, MPI_Request *requests, MPI_Status *statuses)
{
    int left = 0, index, flag, found, indices[2 * MANY + 2];
    MPI_Status some[2 * MANY + 2];
    for (int place = 0; place < count; place++)
        left += requests[place] != MPI_REQUEST_NULL;
    switch (way) {
    case 0: SUCCEEDS(MPI_Waitall(count, requests, statuses)); return;
    case 1:
        for (flag = 0; !flag;)
            SUCCEEDS(MPI_Testall(count, requests, &flag, statuses));
        return;
    case 2:
        for (index = 0; index < count; index++)
            SUCCEEDS(MPI_Wait(&requests[index], &statuses[index]));
        return;
    case 3:
        for (index = count - 1; index >= 0; index--)
            for (flag = 0; !flag;)
                SUCCEEDS(MPI_Test(&requests[index], &flag, &statuses[index]));
        return;
    case 4:
        for (;;) {
            MPI_Status status;
            SUCCEEDS(MPI_Waitany(count, requests, &index, &status));
            if (index == MPI_UNDEFINED)
                break;
            statuses[index] = status;
        }
        return;
    case 5:
        for (;;) {
            MPI_Status status;
            SUCCEEDS(MPI_Testany(count, requests, &index, &flag, &status));
            if (flag && index == MPI_UNDEFINED)
                break;
            if (flag)
                statuses[index] = status;
        }
        return;
    case 6:
    case 7:
        for (;;) {
            SUCCEEDS(way == 6 ? MPI_Waitsome(count, requests, &found, indices, some)
                              : MPI_Testsome(count, requests, &found, indices, some));
            if (found == MPI_UNDEFINED)
                break;
            CHECK(way == 7 || found > 0, "MPI_Waitsome found %d", found);
            for (int place = 0; place < found; place++)
                statuses[indices[place]] = some[place];
        }
        return;
    default: /* Asked about first, which changes nothing. */
        for (index = 0; index < count; index++) {
            for (flag = 0; !flag;)
                SUCCEEDS(MPI_Request_get_status(requests[index], &flag, &statuses[index]));
            MPI_Status again;
            SUCCEEDS(MPI_Wait(&requests[index], &again));
            if (requests[index] != MPI_REQUEST_NULL)
                CHECK(again.MPI_SOURCE == statuses[index].MPI_SOURCE && again.MPI_TAG == statuses[index].MPI_TAG, "another status");
        }
    }
}

static void check_status(const MPI_Status *status, int tag, int length)
{
    int count;
    CHECK_EQUAL(status->MPI_SOURCE, before);
    CHECK_EQUAL(status->MPI_TAG, tag);
    SUCCEEDS(MPI_Get_count(status, MPI_BYTE, &count));
    CHECK_EQUAL(count, length);
}

/* Receives and sends between neighbours, started in several orders, some receives from anybody or with any tag. */
static void every_way(int length)
{
    MPI_Request requests[2 * MANY];
    MPI_Status statuses[2 * MANY];
    for (int number = 0; number < MANY; number++) {
        int source = number % 4 == 1 ? MPI_ANY_SOURCE : before, tag = number % 4 == 2 ? MPI_ANY_TAG : number;
        int room = length + (number & 1);
        SUCCEEDS(MPI_Recv_init(in[number], room, MPI_BYTE, source, tag, MPI_COMM_WORLD, &requests[number]));
    }
    for (int number = 0; number < MANY; number++) {
        if (number % 5 == 4)
            SUCCEEDS(MPI_Ssend_init(out[number], length, MPI_BYTE, next, number, MPI_COMM_WORLD, &requests[MANY + number]));
        else
            SUCCEEDS(MPI_Send_init(out[number], length, MPI_BYTE, next, number, MPI_COMM_WORLD, &requests[MANY + number]));
    }
    for (int way = 0; way < WAYS; way++) {
        for (int number = 0; number < MANY; number++) {
            memset(in[number], 0, length + 1);
            memset(out[number], 1 + way * MANY + number, length);
        }
        MPI_Barrier(MPI_COMM_WORLD); /* No receive with any tag may meet a message of the round before. */
        switch (way % 3) {
        case 0: SUCCEEDS(MPI_Startall(2 * MANY, requests)); break;
        case 1: /* Unexpected, mostly. */
            SUCCEEDS(MPI_Startall(MANY, requests + MANY));
            for (int number = 0; number < MANY; number++)
                SUCCEEDS(MPI_Start(&requests[number]));
            break;
        default:
            for (int number = 0; number < MANY; number++) {
                SUCCEEDS(MPI_Start(&requests[number]));
                SUCCEEDS(MPI_Start(&requests[MANY + number]));
            }
        }
        complete(way, 2 * MANY, requests, statuses);
        for (int number = 0; number < MANY; number++) {
            check_status(&statuses[number], number, length);
            for (int place = 0; place < length; place += 1 + length / 50)
                CHECK_EQUAL((unsigned char)in[number][place], (unsigned char)(1 + way * MANY + number));
            CHECK_EQUAL(in[number][length], 0);
            CHECK(requests[number] != MPI_REQUEST_NULL && requests[MANY + number] != MPI_REQUEST_NULL, "a request is gone");
        }
    }
    for (int number = 0; number < 2 * MANY; number++)
        SUCCEEDS(MPI_Request_free(&requests[number]));
}

/* In one list with others: null, inactive, an ordinary receive and send, a collective, and one to nobody. */
static void among_others(int way, int length)
{
    enum { LIST = 9 };
    MPI_Request requests[LIST], inactive;
    MPI_Status statuses[LIST];
    int one = 1, sum = 0;
    SUCCEEDS(MPI_Send_init(out[0], 1, MPI_BYTE, next, 99, MPI_COMM_WORLD, &inactive));
    SUCCEEDS(MPI_Recv_init(in[0], length, MPI_BYTE, before, 1, MPI_COMM_WORLD, &requests[0]));
    requests[1] = MPI_REQUEST_NULL;
    requests[2] = inactive;
    SUCCEEDS(MPI_Irecv(in[1], length, MPI_BYTE, before, 2, MPI_COMM_WORLD, &requests[3]));
    SUCCEEDS(MPI_Recv_init(in[2], length, MPI_BYTE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &requests[4]));
    SUCCEEDS(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[5]));
    SUCCEEDS(MPI_Start(&requests[0]));
    SUCCEEDS(MPI_Start(&requests[4]));
    SUCCEEDS(MPI_Send_init(out[1], length, MPI_BYTE, next, 1, MPI_COMM_WORLD, &requests[6]));
    SUCCEEDS(MPI_Start(&requests[6]));
    SUCCEEDS(MPI_Isend(out[2], length, MPI_BYTE, next, 2, MPI_COMM_WORLD, &requests[7]));
    SUCCEEDS(MPI_Send_init(out[3], length, MPI_BYTE, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &requests[8]));
    SUCCEEDS(MPI_Start(&requests[8]));
    complete(way, LIST, requests, statuses);
    check_status(&statuses[0], 1, length);
    check_status(&statuses[3], 2, length);
    CHECK_EQUAL(statuses[4].MPI_SOURCE, MPI_PROC_NULL);
    CHECK_EQUAL(sum, check_size);
    CHECK(requests[3] == MPI_REQUEST_NULL && requests[5] == MPI_REQUEST_NULL && requests[7] == MPI_REQUEST_NULL, "one is still there");
    CHECK_EQUAL(requests[2] == inactive, 1);
    const int stay[] = {0, 2, 4, 6, 8};
    for (int place = 0; place < 5; place++)
        SUCCEEDS(MPI_Request_free(&requests[stay[place]]));
}

/* Too long for its buffer: told by every call that completes one, and the request can be started again. */
static void cut_off(void)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int flag = 0, index, found, indices[2], code = MPI_SUCCESS;
    SUCCEEDS(MPI_Recv_init(in[0], 4, MPI_BYTE, before, 7, MPI_COMM_WORLD, &requests[0]));
    SUCCEEDS(MPI_Send_init(out[0], 8, MPI_BYTE, next, 7, MPI_COMM_WORLD, &requests[1]));
    for (int way = 0; way < 8; way++) {
        SUCCEEDS(MPI_Startall(2, requests));
        SUCCEEDS(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
        switch (way) {
        case 0: code = MPI_Wait(&requests[0], &statuses[0]); break;
        case 1:
            for (flag = 0, code = MPI_SUCCESS; !flag && code == MPI_SUCCESS;)
                code = MPI_Test(&requests[0], &flag, &statuses[0]);
            break;
        case 2: code = MPI_Waitany(2, requests, &index, &statuses[0]); break;
        case 3:
            for (flag = 0, code = MPI_SUCCESS; !flag && code == MPI_SUCCESS;)
                code = MPI_Testany(2, requests, &index, &flag, &statuses[0]);
            break;
        case 4:
        case 5:
        case 6:
        case 7:
            for (flag = found = 0, code = MPI_SUCCESS; !flag && found == 0 && code == MPI_SUCCESS;)
                code = way == 4   ? MPI_Waitall(2, requests, statuses)
                       : way == 5 ? MPI_Testall(2, requests, &flag, statuses)
                       : way == 6 ? MPI_Waitsome(2, requests, &found, indices, statuses)
                                  : MPI_Testsome(2, requests, &found, indices, statuses);
            CHECK_EQUAL(class_of(code), MPI_ERR_IN_STATUS);
            code = statuses[0].MPI_ERROR;
        }
        CHECK_EQUAL(class_of(code), MPI_ERR_TRUNCATE);
        /* It is inactive. */
        SUCCEEDS(MPI_Waitany(2, requests, &index, &statuses[0]));
        CHECK_EQUAL(index, MPI_UNDEFINED);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    SUCCEEDS(MPI_Request_free(&requests[0]));
    SUCCEEDS(MPI_Request_free(&requests[1]));
}

static void refused_cancelled_and_freed(void)
{
    MPI_Request request, list[3];
    MPI_Status status;
    int flag;
    SUCCEEDS(MPI_Recv_init(in[0], 8, MPI_BYTE, before, 8, MPI_COMM_WORLD, &request));
    CHECK_EQUAL(class_of(MPI_Cancel(&request)), MPI_ERR_REQUEST); /* Inactive. */
    for (int time = 0; time < 3; time++) { /* Cancelled while nobody sends, and started again. */
        SUCCEEDS(MPI_Start(&request));
        CHECK_EQUAL(class_of(MPI_Start(&request)), MPI_ERR_REQUEST); /* Active. */
        if (time == 1)
            SUCCEEDS(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Cancel(&request));
        SUCCEEDS(MPI_Wait(&request, &status));
        SUCCEEDS(MPI_Test_cancelled(&status, &flag));
        CHECK(flag, "not cancelled");
    }
    /* None is started unless all can be found. */
    list[0] = request;
    list[1] = MPI_REQUEST_NULL;
    list[2] = request;
    CHECK_EQUAL(class_of(MPI_Startall(3, list)), MPI_ERR_REQUEST);
    list[1] = (MPI_Request)(intptr_t)0x7fffff00;
    CHECK_EQUAL(class_of(MPI_Startall(3, list)), MPI_ERR_REQUEST);
    SUCCEEDS(MPI_Start(&request));
    MPI_Barrier(MPI_COMM_WORLD);
    /* Freed while active: the message comes all the same. */
    memset(in[0], 0, 8);
    SUCCEEDS(MPI_Request_free(&request));
    SUCCEEDS(MPI_Send_init(out[0], 8, MPI_BYTE, next, 8, MPI_COMM_WORLD, &request));
    memset(out[0], 0x5a, 8);
    SUCCEEDS(MPI_Start(&request));
    SUCCEEDS(MPI_Request_free(&request));
    while (((volatile char *)in[0])[7] != 0x5a)
        MPI_Iprobe(MPI_ANY_SOURCE, 4000, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The communicator is freed before its requests. */
static void outlives_its_communicator(void)
{
    MPI_Comm comm;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    SUCCEEDS(MPI_Recv_init(in[0], 8, MPI_BYTE, before, 8, comm, &requests[0]));
    SUCCEEDS(MPI_Send_init(out[0], 8, MPI_BYTE, next, 8, comm, &requests[1]));
    SUCCEEDS(MPI_Start(&requests[0]));
    SUCCEEDS(MPI_Comm_free(&comm));
    SUCCEEDS(MPI_Start(&requests[1]));
    SUCCEEDS(MPI_Waitall(2, requests, statuses));
    check_status(&statuses[0], 8, 8);
    SUCCEEDS(MPI_Startall(2, requests));
    SUCCEEDS(MPI_Waitall(2, requests, statuses));
    check_status(&statuses[0], 8, 8);
    SUCCEEDS(MPI_Request_free(&requests[0]));
    SUCCEEDS(MPI_Request_free(&requests[1]));
}

int main(int argc, char **argv)
{
    static const int lengths[] = {0, 1, 8, 41, 1000, 1024, 5000, 70000, LONGEST - 1};
    int provided, threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    SUCCEEDS(MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    next = (check_rank + 1) % check_size;
    before = (check_rank + check_size - 1) % check_size;
    for (size_t place = 0; place < sizeof lengths / sizeof *lengths; place++) {
        every_way(lengths[place]);
        for (int way = 0; way < WAYS; way++)
            among_others(way, lengths[place]);
    }
    cut_off();
    refused_cancelled_and_freed();
    outlives_its_communicator();
    check_end("persistent_messages");
    return 0;
}
