/* MPI 5.0, chapter 3: every mode of sending and every way of receiving, with counts of both sizes; the states of many requests;
 * a session's buffer. */
#define NAME with_int
#include "chapter_03_point_to_point.inc"
#undef NAME
#undef ALL_FORMS
#undef RECEIVE_FIRST
#define LARGE
#define NAME with_count
#include "chapter_03_point_to_point.inc"

/* MPI_Request_get_status_any, _some and _all see what has come and leave the requests as they are. */
static void states(void)
{
    enum { MANY = 4 };
    int numbers[MANY], flag = -1, index = -1, count = -1, indices[MANY];
    MPI_Request requests[MANY];
    MPI_Status status, statuses[MANY];
    for (int one = 0; one < MANY; one++)
        SUCCEEDS(MPI_Irecv(&numbers[one], 1, MPI_INT, 0, one, MPI_COMM_SELF, &requests[one]));
    SUCCEEDS(MPI_Request_get_status_any(MANY, requests, &index, &flag, &status));
    CHECK_EQUAL(flag, 0);
    SUCCEEDS(MPI_Request_get_status_some(MANY, requests, &count, indices, statuses));
    CHECK_EQUAL(count, 0);

    SUCCEEDS(MPI_Send(&(int){42}, 1, MPI_INT, 0, 2, MPI_COMM_SELF));
    for (flag = 0; !flag;)
        SUCCEEDS(MPI_Request_get_status_any(MANY, requests, &index, &flag, &status));
    CHECK_EQUAL(index, 2);
    CHECK_EQUAL(status.MPI_TAG, 2);
    SUCCEEDS(MPI_Request_get_status_some(MANY, requests, &count, indices, statuses));
    CHECK_EQUAL(count, 1);
    CHECK_EQUAL(indices[0], 2);
    SUCCEEDS(MPI_Request_get_status_all(MANY, requests, &flag, statuses));
    CHECK_EQUAL(flag, 0);
    for (int one = 0; one < MANY; one++)
        if (one != 2)
            SUCCEEDS(MPI_Send(&(int){40 + one}, 1, MPI_INT, 0, one, MPI_COMM_SELF));
    for (flag = 0; !flag;)
        SUCCEEDS(MPI_Request_get_status_all(MANY, requests, &flag, statuses));
    for (int one = 0; one < MANY; one++) {
        CHECK(requests[one] != MPI_REQUEST_NULL, "request %d is still there", one);
        CHECK_EQUAL(statuses[one].MPI_TAG, one);
    }
    SUCCEEDS(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    for (int one = 0; one < MANY; one++)
        CHECK_EQUAL(numbers[one], 40 + one);
    SUCCEEDS(MPI_Request_get_status_all(MANY, requests, &flag, statuses));
    CHECK_EQUAL(flag, 1);
    SUCCEEDS(MPI_Request_get_status_some(MANY, requests, &count, indices, statuses));
    CHECK_EQUAL(count, MPI_UNDEFINED);
}

/* A session's buffer serves the communicators that were made from it. */
static void session_buffer(void)
{
    static char room[4096];
    void *given;
    int length;
    MPI_Count long_length;
    MPI_Session session;
    MPI_Group self;
    MPI_Comm comm;
    MPI_Request request;
    SUCCEEDS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    SUCCEEDS(MPI_Group_from_session_pset(session, "mpi://SELF", &self));
    SUCCEEDS(MPI_Comm_create_from_group(self, "chapter 3", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    int got_one = 0;
    for (int large = 0; large < 2; large++) {
        SUCCEEDS(large ? MPI_Session_attach_buffer_c(session, room, sizeof room)
                       : MPI_Session_attach_buffer(session, room, sizeof room));
        SUCCEEDS(MPI_Bsend(&(int){7 + large}, 1, MPI_INT, 0, 0, comm));
        SUCCEEDS(MPI_Recv(&got_one, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE));
        CHECK_EQUAL(got_one, 7 + large);
        SUCCEEDS(MPI_Session_flush_buffer(session));
        SUCCEEDS(MPI_Session_iflush_buffer(session, &request));
        finish(&request);
        if (large) {
            SUCCEEDS(MPI_Session_detach_buffer_c(session, &given, &long_length));
            CHECK_EQUAL(long_length, sizeof room);
        } else {
            SUCCEEDS(MPI_Session_detach_buffer(session, &given, &length));
            CHECK_EQUAL(length, sizeof room);
        }
        CHECK(given == room, "the buffer given back");
    }
    SUCCEEDS(MPI_Comm_free(&comm));
    SUCCEEDS(MPI_Group_free(&self));
    SUCCEEDS(MPI_Session_finalize(&session));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    with_int();
    with_count();
    states();
    session_buffer();
    return check_end("chapter_03_point_to_point");
}
