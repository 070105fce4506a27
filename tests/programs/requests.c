/* Requests of every kind: generalized ones with their callbacks, freed early or not; errors of several requests at once;
 * what may be set in a status; persistent requests that are freed while active; buffers of communicators. */
#include "check.h"

struct counters {
    int queried, freed, cancelled, cancelled_complete;
};

static int query(void *state, MPI_Status *status) {
    ((struct counters *)state)->queried++;
    MPI_Status_set_elements(status, MPI_INT, 7);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 3;
    status->MPI_TAG = 4;
    return MPI_SUCCESS;
}

static int release(void *state) {
    ((struct counters *)state)->freed++;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete) {
    struct counters *counters = state;
    counters->cancelled++;
    counters->cancelled_complete += complete;
    return MPI_SUCCESS;
}

static void generalized(void) {
    struct counters counters = {0, 0, 0, 0};
    MPI_Request request, copy;
    MPI_Status status;
    int flag, count;
    SUCCEEDS(MPI_Grequest_start(query, release, cancel, &counters, &request));
    SUCCEEDS(MPI_Test(&request, &flag, &status));
    CHECK(!flag, "a generalized request is complete only when the program says so");
    SUCCEEDS(MPI_Cancel(&request));
    SUCCEEDS(MPI_Grequest_complete(request));
    SUCCEEDS(MPI_Request_get_status(request, &flag, &status));
    CHECK(flag && counters.queried == 1 && counters.freed == 0, "get_status asks, but does not free");
    SUCCEEDS(MPI_Cancel(&request));
    SUCCEEDS(MPI_Wait(&request, &status));
    CHECK(request == MPI_REQUEST_NULL && counters.queried == 2 && counters.freed == 1, "waited for");
    CHECK(counters.cancelled == 2 && counters.cancelled_complete == 1, "cancelled before and after");
    SUCCEEDS(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_EQUAL(count, 7);
    CHECK(status.MPI_SOURCE == 3 && status.MPI_TAG == 4, "as the query function said");

    /* Freed before it is complete: the copy of the handle names it still. */
    SUCCEEDS(MPI_Grequest_start(query, release, cancel, &counters, &request));
    copy = request;
    SUCCEEDS(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL && counters.freed == 1, "freed when it is complete");
    SUCCEEDS(MPI_Grequest_complete(copy));
    CHECK_EQUAL(counters.freed, 2);
}

static void errors_of_several(int rank, int size) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    int data[4] = {1, 2, 3, 4}, place[4];
    MPI_Request requests[4];
    MPI_Status statuses[4];
    SUCCEEDS(MPI_Irecv(place, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[0]));
    SUCCEEDS(MPI_Irecv(place + 1, 1, MPI_INT, from, 2, MPI_COMM_WORLD, &requests[1]));
    requests[2] = MPI_REQUEST_NULL;
    SUCCEEDS(MPI_Isend(data, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &requests[3]));
    SUCCEEDS(MPI_Send(data, 3, MPI_INT, to, 2, MPI_COMM_WORLD));
    CHECK_EQUAL(MPI_Waitall(4, requests, statuses), MPI_ERR_IN_STATUS);
    CHECK_EQUAL(statuses[0].MPI_ERROR, MPI_SUCCESS);
    CHECK_EQUAL(statuses[1].MPI_ERROR, MPI_ERR_TRUNCATE);
    CHECK_EQUAL(statuses[2].MPI_ERROR, MPI_SUCCESS);
    CHECK_EQUAL(statuses[3].MPI_ERROR, MPI_SUCCESS);
    CHECK_EQUAL(statuses[2].MPI_SOURCE, MPI_ANY_SOURCE);
    CHECK(place[0] == 1 && place[1] == 1, "what fitted has arrived");
    for (int index = 0; index < 4; index++)
        CHECK(requests[index] == MPI_REQUEST_NULL, "request %d is over", index);
    CHECK_EQUAL(MPI_Start(&requests[0]), MPI_ERR_REQUEST);
    CHECK_EQUAL(MPI_Request_free(&requests[0]), MPI_ERR_REQUEST);
}

static void statuses(void) {
    MPI_Status status;
    MPI_Count elements;
    int value, flag;
    memset(&status, 0, sizeof status);
    SUCCEEDS(MPI_Status_set_source(&status, 5));
    SUCCEEDS(MPI_Status_set_tag(&status, 6));
    SUCCEEDS(MPI_Status_set_error(&status, MPI_ERR_OTHER));
    SUCCEEDS(MPI_Status_get_source(&status, &value));
    CHECK_EQUAL(value, 5);
    SUCCEEDS(MPI_Status_get_tag(&status, &value));
    CHECK_EQUAL(value, 6);
    SUCCEEDS(MPI_Status_get_error(&status, &value));
    CHECK_EQUAL(value, MPI_ERR_OTHER);
    SUCCEEDS(MPI_Status_set_cancelled(&status, 1));
    SUCCEEDS(MPI_Test_cancelled(&status, &flag));
    CHECK(flag, "set before");
    /* A pair is two elements: three of them are one and a half. */
    SUCCEEDS(MPI_Status_set_elements_c(&status, MPI_DOUBLE_INT, 3));
    SUCCEEDS(MPI_Get_elements_c(&status, MPI_DOUBLE_INT, &elements));
    CHECK_EQUAL(elements, 3);
    SUCCEEDS(MPI_Get_count(&status, MPI_DOUBLE_INT, &value));
    CHECK_EQUAL(value, MPI_UNDEFINED);
    SUCCEEDS(MPI_Status_set_elements_c(&status, MPI_BYTE, 5000000000));
    SUCCEEDS(MPI_Get_count(&status, MPI_BYTE, &value));
    CHECK_EQUAL(value, MPI_UNDEFINED);
    SUCCEEDS(MPI_Get_count_c(&status, MPI_BYTE, &elements));
    CHECK_EQUAL(elements, 5000000000);
}

static void freed_while_active(int rank, int size) {
    enum { LENGTH = 100000 };
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    static int data[LENGTH], place[LENGTH];
    for (int index = 0; index < LENGTH; index++)
        data[index] = index + rank;
    MPI_Request send, receive;
    SUCCEEDS(MPI_Send_init(data, LENGTH, MPI_INT, to, 8, MPI_COMM_WORLD, &send));
    SUCCEEDS(MPI_Recv_init(place, LENGTH, MPI_INT, from, 8, MPI_COMM_WORLD, &receive));
    SUCCEEDS(MPI_Start(&send));
    SUCCEEDS(MPI_Request_free(&send));
    SUCCEEDS(MPI_Start(&receive));
    SUCCEEDS(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    CHECK(receive != MPI_REQUEST_NULL, "a persistent request stays");
    for (int index = 0; index < LENGTH; index++)
        CHECK_EQUAL(place[index], index + from);
    SUCCEEDS(MPI_Request_free(&receive));
    /* Nobody may write the buffer before the message has gone. */
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
}

static void buffers(int rank) {
    MPI_Comm own;
    char memory[2048], data[1000];
    void *address;
    int size;
    memset(data, rank, sizeof data);
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_SELF, &own));
    SUCCEEDS(MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN));
    CHECK_EQUAL(MPI_Bsend(data, 1000, MPI_CHAR, 0, 0, own), MPI_ERR_BUFFER);
    SUCCEEDS(MPI_Comm_attach_buffer(own, memory, (int)sizeof memory));
    SUCCEEDS(MPI_Bsend(data, 1000, MPI_CHAR, 0, 0, own));
    CHECK_EQUAL(MPI_Bsend(data, 2000, MPI_CHAR, 0, 0, own), MPI_ERR_BUFFER);
    SUCCEEDS(MPI_Recv(data, 1000, MPI_CHAR, 0, 0, own, MPI_STATUS_IGNORE));
    MPI_Request flush;
    SUCCEEDS(MPI_Comm_iflush_buffer(own, &flush));
    SUCCEEDS(MPI_Wait(&flush, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Comm_detach_buffer(own, &address, &size));
    CHECK(address == memory && size == (int)sizeof memory, "what was attached comes back");
    SUCCEEDS(MPI_Comm_attach_buffer(own, MPI_BUFFER_AUTOMATIC, 0));
    SUCCEEDS(MPI_Bsend(data, 1000, MPI_CHAR, 0, 0, own));
    SUCCEEDS(MPI_Recv(data, 1000, MPI_CHAR, 0, 0, own, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Comm_free(&own));
}

/* What was received long ago is out of the buffer, though nothing has asked the NIC since. */
static void full_buffers(int rank, int size) {
    enum { BYTES = 4 << 20 };
    char *memory = malloc(BYTES + MPI_BSEND_OVERHEAD), *data = calloc(1, BYTES);
    void *address;
    int attached, right = (rank + 1) % size, left = (rank + size - 1) % size;
    SUCCEEDS(MPI_Buffer_attach(memory, BYTES + MPI_BSEND_OVERHEAD));
    for (int round = 0; round < 20; round++) {
        SUCCEEDS(MPI_Bsend(data, BYTES, MPI_CHAR, right, 3, MPI_COMM_WORLD));
        SUCCEEDS(MPI_Recv(data, BYTES, MPI_CHAR, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    }
    SUCCEEDS(MPI_Buffer_detach(&address, &attached));
    free(memory);
    free(data);
}

int main(int argc, char **argv) {
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    generalized();
    errors_of_several(check_rank, check_size);
    statuses();
    freed_while_active(check_rank, check_size);
    buffers(check_rank);
    full_buffers(check_rank, check_size);
    return check_end("requests");
}
