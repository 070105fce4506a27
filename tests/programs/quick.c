/* Receives of short messages in all that can happen to their requests: waited for and tested in every way, cancelled, freed, their communicator freed
 * first, too long a message, wildcards, in another order than they come, many at once; and the order between them and other receives. With the
 * argument "threads" several threads of each rank do all that at once, each on communicators of its own. */
#include "check.h"

#include <pthread.h>

enum { window = 300, most_threads = 3, kinds = 3 };

static int threads = 1;
static _Thread_local int rank, size, next, previous;

/* Sends these numbers round, one message each. */
static void send_numbers(MPI_Comm comm, int first, int count, int tag) {
    for (int number = first; number < first + count; number++) SUCCEEDS(MPI_Send(&number, 1, MPI_INT, next, tag, comm));
}

static void receive(int *place, int source, int tag, MPI_Comm comm, MPI_Request *request) {
    *place = -1;
    SUCCEEDS(MPI_Irecv(place, 1, MPI_INT, source, tag, comm, request));
}

static void check_status(const MPI_Status *status, int source, int tag) {
    int count;
    CHECK_EQUAL(status->MPI_SOURCE, source);
    CHECK_EQUAL(status->MPI_TAG, tag);
    SUCCEEDS(MPI_Get_count(status, MPI_INT, &count));
    CHECK_EQUAL(count, 1);
}

/* Every way to complete requests, `before`: the messages come before the receives. */
static void completions(MPI_Comm comm, int before) {
    static _Thread_local int places[window];
    static _Thread_local MPI_Request requests[window], copies[window];
    static _Thread_local MPI_Status statuses[window];
    for (int way = 0; way < 9; way++) {
        if (before) {
            send_numbers(comm, 0, window, way);
            SUCCEEDS(MPI_Barrier(comm));
        }
        for (int index = 0; index < window; index++) receive(places + index, previous, way, comm, requests + index);
        memcpy(copies, requests, sizeof requests);
        if (!before) {
            SUCCEEDS(MPI_Barrier(comm));
            send_numbers(comm, 0, window, way);
        }
        int flag = 0, index, count, indices[window];
        switch (way) {
        case 0:
            for (index = window - 1; index >= 0; index--) SUCCEEDS(MPI_Wait(requests + index, statuses + index));
            break;
        case 1:
            for (index = 0; index < window; index++)
                for (flag = 0; !flag;) SUCCEEDS(MPI_Test(requests + index, &flag, statuses + index));
            break;
        case 2: SUCCEEDS(MPI_Waitall(window, requests, statuses)); break;
        case 3:
            while (!flag) SUCCEEDS(MPI_Testall(window, requests, &flag, statuses));
            break;
        case 4:
            for (int done = 0; done < window; done++) {
                MPI_Status status;
                SUCCEEDS(MPI_Waitany(window, requests, &index, &status));
                statuses[index] = status;
            }
            break;
        case 5:
            for (int done = 0; done < window; done += flag) {
                MPI_Status status;
                SUCCEEDS(MPI_Testany(window, requests, &index, &flag, &status));
                if (flag) statuses[index] = status;
            }
            break;
        case 6:
        case 7:
            for (int done = 0; done < window; done += count) {
                static _Thread_local MPI_Status some[window];
                if (way == 6)
                    SUCCEEDS(MPI_Waitsome(window, requests, &count, indices, some));
                else
                    SUCCEEDS(MPI_Testsome(window, requests, &count, indices, some));
                for (int place = 0; place < count; place++) statuses[indices[place]] = some[place];
            }
            break;
        case 8:
            for (index = 0; index < window; index++) {
                for (flag = 0; !flag;) SUCCEEDS(MPI_Request_get_status(requests[index], &flag, statuses + index));
                CHECK(requests[index] == copies[index], "get_status leaves the request");
                SUCCEEDS(MPI_Wait(requests + index, statuses + index));
            }
        }
        for (index = 0; index < window; index++) {
            CHECK(requests[index] == MPI_REQUEST_NULL, "request %d, way %d", index, way);
            CHECK(places[index] == index, "place %d has %d, way %d", index, places[index], way);
            check_status(statuses + index, previous, way);
        }
        /* The handles of what is complete are recognised, unless other threads have started very many since. */
        if (threads > 1) continue;
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        int class;
        MPI_Error_class(MPI_Wait(copies + window / 2, MPI_STATUS_IGNORE), &class);
        CHECK_EQUAL(class, MPI_ERR_REQUEST);
    }
}

/* Receives that match in another order than they were posted, beside long ones and wildcards. */
static void order(MPI_Comm comm) {
    enum { many = 40 };
    int places[many], any, late, number;
    static _Thread_local char big[1 << 20];
    MPI_Request requests[many], wild, longer;
    MPI_Status status;
    for (int index = 0; index < many; index++) receive(places + index, previous, index, comm, requests + index);
    receive(&any, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &wild);
    SUCCEEDS(MPI_Irecv(big, sizeof big, MPI_CHAR, previous, many + 1, comm, &longer));
    for (int index = many - 1; index >= 0; index--) send_numbers(comm, index, 1, index);
    send_numbers(comm, 77, 1, many);
    static _Thread_local char bytes[1 << 20];
    memset(bytes, rank + 1, sizeof bytes);
    MPI_Request sent;
    SUCCEEDS(MPI_Isend(bytes, sizeof bytes, MPI_CHAR, next, many + 1, comm, &sent));
    send_numbers(comm, 78, 1, many + 2);
    SUCCEEDS(MPI_Recv(&late, 1, MPI_INT, previous, many + 2, comm, &status));
    CHECK_EQUAL(late, 78);
    SUCCEEDS(MPI_Wait(&wild, &status));
    check_status(&status, previous, many);
    CHECK_EQUAL(any, 77);
    SUCCEEDS(MPI_Waitall(many, requests, MPI_STATUSES_IGNORE));
    for (int index = 0; index < many; index++) CHECK_EQUAL(places[index], index);
    SUCCEEDS(MPI_Wait(&longer, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Wait(&sent, MPI_STATUS_IGNORE));
    CHECK(big[0] == previous + 1 && big[(1 << 20) - 1] == previous + 1, "the long message");

    /* A receive that is not posted comes before a blocking one and before a probe of the same messages. */
    MPI_Request first;
    receive(places, previous, 5, comm, &first);
    send_numbers(comm, 1, 2, 5);
    SUCCEEDS(MPI_Probe(previous, 5, comm, &status));
    SUCCEEDS(MPI_Recv(&number, 1, MPI_INT, previous, 5, comm, MPI_STATUS_IGNORE));
    CHECK_EQUAL(number, 2);
    SUCCEEDS(MPI_Wait(&first, MPI_STATUS_IGNORE));
    CHECK_EQUAL(places[0], 1);
}

/* A synchronous send to a receive whose process does something else. */
static void synchronous(MPI_Comm comm) {
    int place;
    MPI_Request request;
    for (int turn = 0; turn < 2; turn++) {
        receive(&place, previous, 1, comm, &request);
        if (turn == rank % 2) {
            SUCCEEDS(MPI_Ssend(&turn, 1, MPI_INT, next, 1, comm));
            SUCCEEDS(MPI_Barrier(comm));
        } else {
            MPI_Request sent;
            SUCCEEDS(MPI_Issend(&turn, 1, MPI_INT, next, 1, comm, &sent));
            SUCCEEDS(MPI_Barrier(comm));
            SUCCEEDS(MPI_Wait(&sent, MPI_STATUS_IGNORE));
        }
        SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_EQUAL(place, turn);
    }
}

/* Looked at when it is complete, and another one after it, before either is waited for. */
static void looked_at(MPI_Comm comm) {
    enum { many = 20 };
    int places[many], flag;
    MPI_Request requests[many];
    MPI_Status status;
    for (int index = 0; index < many; index++) {
        receive(places + index, previous, 9, comm, requests + index);
        SUCCEEDS(MPI_Request_get_status(requests[index], &flag, &status));
        send_numbers(comm, index, 1, 9);
        for (flag = 0; !flag;) SUCCEEDS(MPI_Request_get_status(requests[index], &flag, &status));
        check_status(&status, previous, 9);
    }
    for (int index = 0; index < many; index++) {
        SUCCEEDS(MPI_Wait(requests + index, &status));
        CHECK_EQUAL(places[index], index);
    }
}

static void *wait_for_it(void *request) {
    SUCCEEDS(MPI_Wait(request, MPI_STATUS_IGNORE));
    return NULL;
}

/* A thread waits for it while another one frees its communicator. */
static void freed_by_another(MPI_Comm comm) {
    for (int round = 0; round < 20; round++) {
        int place;
        MPI_Comm copy;
        MPI_Request request;
        pthread_t waiter;
        SUCCEEDS(MPI_Comm_dup(comm, &copy));
        receive(&place, previous, 10, copy, &request);
        pthread_create(&waiter, NULL, wait_for_it, &request);
        if (round % 2) sleep_ms(1);
        send_numbers(copy, round, 1, 10);
        SUCCEEDS(MPI_Comm_free(&copy));
        pthread_join(waiter, NULL);
        CHECK_EQUAL(place, round);
        CHECK(request == MPI_REQUEST_NULL, "waited for");
    }
}

static void ends(MPI_Comm comm) {
    int place, flag, class, other;
    MPI_Request request, second;
    MPI_Status status;

    /* Cancelled; the message goes to the next receive. */
    receive(&place, previous, 2, comm, &request);
    receive(&other, previous, 2, comm, &second);
    SUCCEEDS(MPI_Cancel(&request));
    SUCCEEDS(MPI_Wait(&request, &status));
    SUCCEEDS(MPI_Test_cancelled(&status, &flag));
    CHECK(flag && place == -1, "cancelled");
    SUCCEEDS(MPI_Barrier(comm));
    send_numbers(comm, 9, 1, 2);
    SUCCEEDS(MPI_Wait(&second, &status));
    SUCCEEDS(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag && other == 9, "not cancelled");

    /* Freed while it is active: it receives all the same. */
    receive(&place, previous, 3, comm, &request);
    SUCCEEDS(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL, "freed");
    send_numbers(comm, 11, 1, 3);
    send_numbers(comm, 12, 1, 3);
    SUCCEEDS(MPI_Recv(&other, 1, MPI_INT, previous, 3, comm, MPI_STATUS_IGNORE));
    CHECK(place == 11 && other == 12, "%d and %d", place, other);

    /* Its communicator is freed while it is active. */
    MPI_Comm copy;
    SUCCEEDS(MPI_Comm_dup(comm, &copy));
    SUCCEEDS(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN));
    receive(&place, previous, 4, copy, &request);
    receive(&other, previous, 4, copy, &second);
    SUCCEEDS(MPI_Barrier(copy));
    send_numbers(copy, 13, 1, 4);
    int two[2] = {14, 15};
    SUCCEEDS(MPI_Send(two, 2, MPI_INT, next, 4, copy));
    SUCCEEDS(MPI_Comm_free(&copy));
    SUCCEEDS(MPI_Wait(&request, &status));
    check_status(&status, previous, 4);
    CHECK_EQUAL(place, 13);
    /* Its error handler lives on, too. */
    MPI_Error_class(MPI_Wait(&second, &status), &class);
    CHECK_EQUAL(class, MPI_ERR_TRUNCATE);

    /* One of several is too long for its buffer. */
    MPI_Request three[3];
    MPI_Status statuses[3];
    int places[3];
    SUCCEEDS(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    for (int index = 0; index < 3; index++) receive(places + index, previous, 6, comm, three + index);
    send_numbers(comm, 16, 1, 6);
    SUCCEEDS(MPI_Send(two, 2, MPI_INT, next, 6, comm));
    send_numbers(comm, 17, 1, 6);
    CHECK_EQUAL(MPI_Waitall(3, three, statuses), MPI_ERR_IN_STATUS);
    CHECK_EQUAL(statuses[0].MPI_ERROR, MPI_SUCCESS);
    MPI_Error_class(statuses[1].MPI_ERROR, &class);
    CHECK_EQUAL(class, MPI_ERR_TRUNCATE);
    CHECK_EQUAL(statuses[2].MPI_ERROR, MPI_SUCCESS);
    CHECK(places[0] == 16 && places[2] == 17, "%d and %d", places[0], places[2]);
    for (int index = 0; index < 3; index++) CHECK(three[index] == MPI_REQUEST_NULL, "request %d", index);

    /* Nothing, and nobody. */
    SUCCEEDS(MPI_Irecv(NULL, 0, MPI_INT, previous, 7, comm, &request));
    SUCCEEDS(MPI_Send(NULL, 0, MPI_INT, next, 7, comm));
    SUCCEEDS(MPI_Wait(&request, &status));
    CHECK_EQUAL(status.MPI_TAG, 7);
    receive(&place, MPI_PROC_NULL, 7, comm, &request);
    SUCCEEDS(MPI_Wait(&request, &status));
    CHECK_EQUAL(status.MPI_SOURCE, MPI_PROC_NULL);
}

/* More than there are numbers for. */
static void very_many(MPI_Comm comm) {
    enum { count = 70000 };
    int *places = malloc(count * sizeof *places);
    MPI_Request *requests = malloc(count * sizeof *requests);
    for (int index = 0; index < count; index++) receive(places + index, previous, 8, comm, requests + index);
    for (int number = 0; number < count; number++) SUCCEEDS(MPI_Send(&number, 1, MPI_INT, next, 8, comm));
    SUCCEEDS(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    for (int index = 0; index < count; index++) CHECK_EQUAL(places[index], index);
    free(places);
    free(requests);
}

static MPI_Comm comms[most_threads][kinds];

static void *all_of_it(void *argument) {
    MPI_Comm *own = argument;
    for (int which = 0; which < kinds; which++) {
        MPI_Comm_rank(own[which], &rank);
        MPI_Comm_size(own[which], &size);
        next = (rank + 1) % size;
        previous = (rank + size - 1) % size;
        completions(own[which], 0);
        completions(own[which], 1);
        order(own[which]);
        if (size > 1 && size % 2 == 0) synchronous(own[which]);
        looked_at(own[which]);
        if (threads > 1) freed_by_another(own[which]);
        ends(own[which]);
        if (which == 0 && own == comms[0]) very_many(own[which]);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    threads = argc > 1 && strcmp(argv[1], "threads") == 0 ? most_threads : 1;
    SUCCEEDS(MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    for (int thread = 0; thread < threads; thread++) {
        SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, comms[thread]));
        /* Ranks that are not the numbers of the processes. */
        SUCCEEDS(MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, comms[thread] + 1));
        SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, comms[thread] + 2));
    }
    pthread_t handles[most_threads];
    for (int thread = 1; thread < threads; thread++) pthread_create(handles + thread, NULL, all_of_it, comms[thread]);
    all_of_it(comms[0]);
    for (int thread = 1; thread < threads; thread++) pthread_join(handles[thread], NULL);
    for (int thread = 0; thread < threads; thread++)
        for (int which = 0; which < kinds; which++) SUCCEEDS(MPI_Comm_free(comms[thread] + which));
    check_end("quick");
    return 0;
}
