/* Lists in which each request is of another kind: none, a send that is complete at once, receives of short and long messages, a long send, persistent
 * ones, started or not, a generalized one, an operation of all ranks. Every procedure for lists finds, tells and ends what it should, leaves what is
 * pending, tells which of them failed, and names a handle that is none. */
#include "check.h"

enum { LONG = 200000, KINDS = 10 };
enum { NONE, SENT, SHORT, LATE, LONGER, LONG_SENT, AGAIN, STOPPED, OWN, ALL };

static int next, before;
static char *in, *out, small[4][8];
static int freed;

static int query(void *state, MPI_Status *status)
{
    (void)state;
    MPI_Status_set_elements(status, MPI_BYTE, 5);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 41;
    status->MPI_TAG = 42;
    return MPI_SUCCESS;
}

static int forget(void *state)
{
    (void)state;
    freed++;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    (void)state;
    (void)complete;
    return MPI_SUCCESS;
}

static int is_active(int kind)
{
    return kind != NONE && kind != STOPPED;
}

/* How many are active. What `LATE` waits for is sent by `let_it_come`. */
static int start(MPI_Request *requests)
{
    requests[NONE] = MPI_REQUEST_NULL;
    SUCCEEDS(MPI_Irecv(small[0], 8, MPI_BYTE, before, SHORT, MPI_COMM_WORLD, &requests[SHORT]));
    SUCCEEDS(MPI_Irecv(small[1], 8, MPI_BYTE, before, LATE, MPI_COMM_WORLD, &requests[LATE]));
    SUCCEEDS(MPI_Irecv(in, LONG, MPI_BYTE, before, LONGER, MPI_COMM_WORLD, &requests[LONGER]));
    SUCCEEDS(MPI_Recv_init(small[2], 8, MPI_BYTE, before, AGAIN, MPI_COMM_WORLD, &requests[AGAIN]));
    SUCCEEDS(MPI_Recv_init(small[3], 8, MPI_BYTE, before, STOPPED, MPI_COMM_WORLD, &requests[STOPPED]));
    SUCCEEDS(MPI_Start(&requests[AGAIN]));
    SUCCEEDS(MPI_Isend("sent...", 8, MPI_BYTE, next, SHORT, MPI_COMM_WORLD, &requests[SENT]));
    SUCCEEDS(MPI_Isend(out, LONG, MPI_BYTE, next, LONGER, MPI_COMM_WORLD, &requests[LONG_SENT]));
    SUCCEEDS(MPI_Send("again..", 8, MPI_BYTE, next, AGAIN, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Grequest_start(query, forget, cancel, NULL, &requests[OWN]));
    SUCCEEDS(MPI_Ibarrier(MPI_COMM_WORLD, &requests[ALL]));
    int active = 0;
    for (int kind = 0; kind < KINDS; kind++)
        active += is_active(kind);
    return active;
}

static void let_it_come(MPI_Request own)
{
    MPI_Barrier(MPI_COMM_WORLD); /* All have seen that it is pending. */
    SUCCEEDS(MPI_Send("late...", 8, MPI_BYTE, next, LATE, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Grequest_complete(own));
}

static void check_status(int kind, const MPI_Status *status, const char *how)
{
    int bytes = -1;
    SUCCEEDS(MPI_Get_count(status, MPI_BYTE, &bytes));
    switch (kind) {
    case SHORT: case LATE: case AGAIN: case LONGER:
        CHECK(status->MPI_SOURCE == before && status->MPI_TAG == kind && bytes == (kind == LONGER ? LONG : 8),
              "%s: kind %d came from %d with tag %d and %d bytes", how, kind, status->MPI_SOURCE, status->MPI_TAG, bytes);
        break;
    case OWN:
        CHECK(status->MPI_SOURCE == 41 && status->MPI_TAG == 42 && bytes == 5, "%s: the query function's status", how);
        break;
    case NONE: case STOPPED:
        CHECK(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && bytes == 0, "%s: kind %d is empty", how, kind);
    }
}

/* After all have been told of. */
static void check_ends(MPI_Request *requests, const char *how)
{
    for (int kind = 0; kind < KINDS; kind++) {
        int stays = kind == AGAIN || kind == STOPPED;
        CHECK((requests[kind] != MPI_REQUEST_NULL) == stays, "%s: the handle of kind %d", how, kind);
    }
    CHECK(memcmp(small[0], "sent...", 8) == 0 && memcmp(small[1], "late...", 8) == 0 && memcmp(small[2], "again..", 8) == 0, "%s", how);
    CHECK(memcmp(in, out, LONG) == 0, "%s: the long message", how);
    memset(small, 0, sizeof small);
    memset(in, 0, LONG);
    SUCCEEDS(MPI_Request_free(&requests[AGAIN]));
    SUCCEEDS(MPI_Request_free(&requests[STOPPED]));
    CHECK_EQUAL(freed, 1);
    freed = 0;
}

static void all_at_once(void)
{
    MPI_Request requests[KINDS], copies[KINDS];
    MPI_Status statuses[KINDS];
    for (int way = 0; way < 3; way++) {
        int flag = 1;
        start(requests);
        memcpy(copies, requests, sizeof requests);
        SUCCEEDS(way == 2 ? MPI_Request_get_status_all(KINDS, requests, &flag, statuses) : MPI_Testall(KINDS, requests, &flag, statuses));
        CHECK_EQUAL(flag, 0);
        CHECK(memcmp(copies, requests, sizeof requests) == 0, "nothing is ended before all are complete");
        let_it_come(requests[OWN]);
        if (way == 0)
            SUCCEEDS(MPI_Waitall(KINDS, requests, statuses));
        while (way == 1 && !flag)
            SUCCEEDS(MPI_Testall(KINDS, requests, &flag, statuses));
        while (way == 2 && !flag)
            SUCCEEDS(MPI_Request_get_status_all(KINDS, requests, &flag, statuses));
        for (int kind = 0; kind < KINDS; kind++)
            check_status(kind, &statuses[kind], "all");
        if (way == 2) {
            CHECK(memcmp(copies, requests, sizeof requests) == 0, "MPI_Request_get_status_all ends nothing");
            memset(statuses, 0, sizeof statuses);
            SUCCEEDS(MPI_Waitall(KINDS, requests, statuses));
            for (int kind = 0; kind < KINDS; kind++)
                check_status(kind, &statuses[kind], "all again");
        }
        check_ends(requests, "all");
    }
}

static void one_by_one(void)
{
    MPI_Request requests[KINDS];
    MPI_Status status, same;
    for (int way = 0; way < 2; way++) {
        int seen[KINDS] = {0}, left = start(requests), index, flag, again;
        while (left > 0) {
            /* The two that nothing has been done for are left. */
            if (left == 2) {
                CHECK(!seen[LATE] && !seen[OWN], "what nobody has completed is pending");
                SUCCEEDS(MPI_Testany(KINDS, requests, &index, &flag, &status));
                CHECK(!flag && index == MPI_UNDEFINED, "MPI_Testany found %d", index);
                SUCCEEDS(MPI_Request_get_status_any(KINDS, requests, &index, &flag, &status));
                CHECK(!flag && index == MPI_UNDEFINED, "MPI_Request_get_status_any found %d", index);
                let_it_come(requests[OWN]);
            }
            for (flag = 0; way == 1 && !flag;)
                SUCCEEDS(MPI_Testany(KINDS, requests, &index, &flag, &status));
            if (way == 0) {
                for (flag = 0; !flag;)
                    SUCCEEDS(MPI_Request_get_status_any(KINDS, requests, &index, &flag, &same));
                MPI_Request copy = requests[index];
                SUCCEEDS(MPI_Request_get_status(copy, &flag, &same));
                CHECK(flag && requests[index] == copy, "MPI_Request_get_status_any leaves the request");
                check_status(index, &same, "get_status_any");
                SUCCEEDS(MPI_Waitany(KINDS, requests, &again, &status));
                CHECK(again <= index, "MPI_Waitany found %d, and %d was there", again, index);
                index = again;
            }
            CHECK(index >= 0 && index < KINDS && is_active(index) && !seen[index], "found %d", index);
            seen[index] = 1;
            left--;
            check_status(index, &status, "any");
        }
        SUCCEEDS(way ? MPI_Testany(KINDS, requests, &index, &flag, &status) : MPI_Waitany(KINDS, requests, &index, &status));
        CHECK(index == MPI_UNDEFINED && flag, "none is active");
        check_status(NONE, &status, "any of none");
        check_ends(requests, "any");
    }
}

static void some_at_once(void)
{
    MPI_Request requests[KINDS];
    MPI_Status statuses[KINDS], same[KINDS];
    int indices[KINDS], others[KINDS];
    for (int way = 0; way < 2; way++) {
        int seen[KINDS] = {0}, left = start(requests), found, kept;
        while (left > 0) {
            if (left == 2) {
                CHECK(!seen[LATE] && !seen[OWN], "what nobody has completed is pending");
                SUCCEEDS(MPI_Testsome(KINDS, requests, &found, indices, statuses));
                CHECK_EQUAL(found, 0);
                SUCCEEDS(MPI_Request_get_status_some(KINDS, requests, &found, indices, statuses));
                CHECK_EQUAL(found, 0);
                let_it_come(requests[OWN]);
            }
            SUCCEEDS(MPI_Request_get_status_some(KINDS, requests, &kept, others, same));
            for (int place = 0; place < kept; place++)
                check_status(others[place], &same[place], "get_status_some");
            SUCCEEDS(way ? MPI_Testsome(KINDS, requests, &found, indices, statuses) : MPI_Waitsome(KINDS, requests, &found, indices, statuses));
            CHECK(found >= kept && (way || found > 0), "%d were complete, and %d are told", kept, found);
            for (int place = 0; place < found; place++) {
                int index = indices[place];
                CHECK(is_active(index) && !seen[index] && (place == 0 || indices[place - 1] < index), "found %d", index);
                seen[index] = 1;
                left--;
                check_status(index, &statuses[place], "some");
            }
        }
        SUCCEEDS(way ? MPI_Testsome(KINDS, requests, &found, indices, statuses) : MPI_Waitsome(KINDS, requests, &found, indices, statuses));
        CHECK_EQUAL(found, MPI_UNDEFINED);
        SUCCEEDS(MPI_Request_get_status_some(KINDS, requests, &found, indices, statuses));
        CHECK_EQUAL(found, MPI_UNDEFINED);
        check_ends(requests, "some");
    }
}

static int says(int code, const char *part)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    return strstr(text, part) != NULL;
}

/* Those that failed have their errors in their own statuses, and the others MPI_SUCCESS. */
static void failures(void)
{
    for (int way = 0; way < 6; way++) {
        MPI_Request requests[5];
        MPI_Status statuses[5];
        int indices[5], count = 5, flag = 0, code = MPI_SUCCESS;
        requests[0] = MPI_REQUEST_NULL;
        for (int index = 1; index < 5; index++) {
            int room = index % 2 ? 8 : 4; /* Too short for a short and for a long message. */
            SUCCEEDS(MPI_Irecv(in + 1000 * index, room, MPI_BYTE, before, index, MPI_COMM_WORLD, &requests[index]));
        }
        for (int index = 1; index < 4; index++)
            SUCCEEDS(MPI_Send(out, 8, MPI_BYTE, next, index, MPI_COMM_WORLD));
        MPI_Request sent;
        SUCCEEDS(MPI_Isend(out, LONG, MPI_BYTE, next, 4, MPI_COMM_WORLD, &sent));
        SUCCEEDS(MPI_Wait(&sent, MPI_STATUS_IGNORE));
        MPI_Barrier(MPI_COMM_WORLD);
        for (int time = 0; !flag && time < 1000000; time++) /* All are told in one call. */
            for (int index = flag = 1; index < 5; index++) {
                int done;
                code = MPI_Request_get_status(requests[index], &done, MPI_STATUS_IGNORE);
                CHECK_EQUAL(class_of(code), done && index % 2 == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
                flag &= done;
            }
        CHECK(flag, "all have come");
        switch (way) {
        case 0: code = MPI_Waitall(5, requests, statuses); break;
        case 1: code = MPI_Testall(5, requests, &flag, statuses); break;
        case 2: code = MPI_Request_get_status_all(5, requests, &flag, statuses); break;
        case 3: code = MPI_Waitsome(5, requests, &count, indices, statuses); break;
        case 4: code = MPI_Testsome(5, requests, &count, indices, statuses); break;
        case 5: code = MPI_Request_get_status_some(5, requests, &count, indices, statuses); break;
        }
        CHECK_EQUAL(class_of(code), MPI_ERR_IN_STATUS);
        CHECK(says(code, "array_of_requests[2]"), "way %d names the first that failed", way);
        CHECK_EQUAL(count, way < 3 ? 5 : 4);
        for (int place = 0; place < count; place++) {
            int index = way < 3 ? place : indices[place];
            CHECK_EQUAL(index, way < 3 ? place : place + 1);
            CHECK_EQUAL(class_of(statuses[place].MPI_ERROR), index > 0 && index % 2 == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        }
        for (int index = 1; index < 5; index++) {
            CHECK((requests[index] != MPI_REQUEST_NULL) == (way == 2 || way == 5), "way %d: the handle of %d", way, index);
            if (requests[index] != MPI_REQUEST_NULL)
                CHECK_EQUAL(class_of(MPI_Wait(&requests[index], MPI_STATUS_IGNORE)), index % 2 == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        }
    }
}

/* A handle that is none is named by each, and those before it are left as they are, where nothing was to be waited for. */
static void no_handles(void)
{
    MPI_Request freed_one, requests[3], copies[3];
    MPI_Status statuses[3];
    int index, count, indices[3], flag;
    SUCCEEDS(MPI_Recv_init(small[0], 8, MPI_BYTE, before, 1, MPI_COMM_WORLD, &freed_one));
    requests[2] = freed_one;
    SUCCEEDS(MPI_Request_free(&freed_one));
    for (int which = 0; which < 3; which++) {
        requests[0] = MPI_REQUEST_NULL;
        SUCCEEDS(which == 2 ? MPI_Issend(out, 8, MPI_BYTE, next, 2, MPI_COMM_WORLD, &requests[1])
                            : MPI_Irecv(small[1], 8, MPI_BYTE, before, 3, MPI_COMM_WORLD, &requests[1]));
        if (which == 1)
            requests[2] = (MPI_Request)MPI_COMM_WORLD;
        memcpy(copies, requests, sizeof requests);
        for (int way = 0; way < 8 + (which == 2); way++) {
            int code = way == 0   ? MPI_Testall(3, requests, &flag, statuses)
                       : way == 1 ? MPI_Waitany(3, requests, &index, statuses)
                       : way == 2 ? MPI_Testany(3, requests, &index, &flag, statuses)
                       : way == 3 ? MPI_Waitsome(3, requests, &count, indices, statuses)
                       : way == 4 ? MPI_Testsome(3, requests, &count, indices, statuses)
                       : way == 5 ? MPI_Request_get_status_all(3, requests, &flag, statuses)
                       : way == 6 ? MPI_Request_get_status_any(3, requests, &index, &flag, statuses)
                       : way == 7 ? MPI_Request_get_status_some(3, requests, &count, indices, statuses)
                                  : MPI_Waitall(3, requests, statuses);
            CHECK_EQUAL(class_of(code), MPI_ERR_REQUEST);
            CHECK(says(code, "array_of_requests[2]"), "way %d names it", way);
            CHECK(memcmp(copies, requests, sizeof requests) == 0, "way %d leaves the others", way);
        }
        if (which == 2)
            SUCCEEDS(MPI_Recv(small[1], 8, MPI_BYTE, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        else
            SUCCEEDS(MPI_Send(out, 8, MPI_BYTE, next, 3, MPI_COMM_WORLD));
        SUCCEEDS(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    }
    CHECK_EQUAL(class_of(MPI_Startall(3, requests)), MPI_ERR_REQUEST);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    next = (check_rank + 1) % check_size;
    before = (check_rank + check_size - 1) % check_size;
    in = calloc(LONG, 1);
    out = malloc(LONG);
    for (int at = 0; at < LONG; at++)
        out[at] = (char)(at * 7 + at / 251);
    for (int time = 0; time < 20; time++) {
        all_at_once();
        one_by_one();
        some_at_once();
        failures();
        no_handles();
    }
    free(in);
    free(out);
    return check_end("request_lists");
}
