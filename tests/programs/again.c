/* Sends and receives with the arguments of one before, and with one of them changed each time: freed communicators and datatypes whose handles are
 * given out again, wrong ranks, tags, counts and addresses, wildcards, datatypes with gaps, messages that are too long. */
#include "check.h"

enum { rounds = 300 };

static int rank, size, next, previous;

#define FAILS(class, call) CHECK_EQUAL(class_of(call), class)

/* A message to the next rank, by each pair of calls. */
static void round_trip(MPI_Comm comm, MPI_Datatype datatype, int count, int tag)
{
    int out[4] = {rank, tag, count, 4}, in[4];
    MPI_Request requests[2];
    MPI_Status status;
    for (int all = 0; all < 2; all++) {
        MPI_Status statuses[2];
        memset(in, 0, sizeof in);
        SUCCEEDS(MPI_Irecv(in, count, datatype, previous, tag, comm, &requests[0]));
        if (all) {
            SUCCEEDS(MPI_Isend(out, count, datatype, next, tag, comm, &requests[1]));
            SUCCEEDS(MPI_Waitall(2, requests, statuses));
        } else {
            SUCCEEDS(MPI_Send(out, count, datatype, next, tag, comm));
            SUCCEEDS(MPI_Wait(&requests[0], statuses));
        }
        CHECK_EQUAL(statuses[0].MPI_SOURCE, previous);
        CHECK_EQUAL(statuses[0].MPI_TAG, tag);
        CHECK(in[0] == previous && in[1] == tag, "%d and %d", in[0], in[1]);
    }
    memset(in, 0, sizeof in);
    SUCCEEDS(MPI_Send(out, count, datatype, next, tag, comm));
    SUCCEEDS(MPI_Recv(in, count, datatype, previous, tag, comm, &status));
    CHECK_EQUAL(status.MPI_SOURCE, previous);
    CHECK(in[0] == previous && in[1] == tag, "%d and %d", in[0], in[1]);
}

/* Handles are given out again after some time: then they name another object. */
static void handles_again(void)
{
    for (int turn = 0; turn < rounds; turn++) {
        MPI_Comm copy, freed;
        MPI_Datatype type, gone;
        SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
        int ints = 2 + turn % 3;
        SUCCEEDS(MPI_Type_contiguous(ints, MPI_INT, &type));
        SUCCEEDS(MPI_Type_commit(&type));
        round_trip(copy, type, 1, turn);
        round_trip(copy, MPI_INT, 2, turn);
        /* What another communicator has in the mailbox is none of this one's. */
        int old = -1, young = turn;
        SUCCEEDS(MPI_Send(&old, 1, MPI_INT, next, 5, MPI_COMM_WORLD));
        SUCCEEDS(MPI_Send(&young, 1, MPI_INT, next, 5, copy));
        SUCCEEDS(MPI_Recv(&old, 1, MPI_INT, previous, 5, copy, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Recv(&young, 1, MPI_INT, previous, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(old == turn && young == -1, "%d and %d", old, young);
        freed = copy;
        gone = type;
        SUCCEEDS(MPI_Comm_free(&copy));
        FAILS(MPI_ERR_COMM, MPI_Send(&old, 2, MPI_INT, next, 5, freed));
        FAILS(MPI_ERR_COMM, MPI_Recv(&old, 2, MPI_INT, previous, 5, freed, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Type_free(&type));
        FAILS(MPI_ERR_TYPE, MPI_Send(&old, 1, gone, next, 5, MPI_COMM_WORLD));
    }
}

static void wrong(void)
{
    int place[4] = {0}, other;
    MPI_Request request;
    MPI_Status status;
    MPI_Comm world = MPI_COMM_WORLD;
    for (int turn = 0; turn < 2; turn++) {
        round_trip(world, MPI_INT, 2, 7);
        FAILS(MPI_ERR_TAG, MPI_Send(place, 2, MPI_INT, next, -3, world));
        FAILS(MPI_ERR_TAG, MPI_Isend(place, 2, MPI_INT, next, MPI_ANY_TAG, world, &request));
        FAILS(MPI_ERR_TAG, MPI_Recv(place, 2, MPI_INT, previous, -7, world, &status));
        FAILS(MPI_ERR_TAG, MPI_Irecv(place, 2, MPI_INT, previous, -7, world, &request));
        FAILS(MPI_ERR_BUFFER, MPI_Send(NULL, 2, MPI_INT, next, 7, world));
        FAILS(MPI_ERR_BUFFER, MPI_Irecv(NULL, 2, MPI_INT, previous, 7, world, &request));
        FAILS(MPI_ERR_BUFFER, MPI_Recv(MPI_IN_PLACE, 2, MPI_INT, previous, 7, world, &status));
        FAILS(MPI_ERR_ARG, MPI_Irecv(place, 2, MPI_INT, previous, 7, world, NULL));
        FAILS(MPI_ERR_ARG, MPI_Isend(place, 2, MPI_INT, next, 7, world, NULL));
        FAILS(MPI_ERR_COUNT, MPI_Send(place, -2, MPI_INT, next, 7, world));
        FAILS(MPI_ERR_RANK, MPI_Send(place, 2, MPI_INT, size, 7, world));
        FAILS(MPI_ERR_RANK, MPI_Recv(place, 2, MPI_INT, size, 7, world, &status));
        FAILS(MPI_ERR_RANK, MPI_Send(place, 2, MPI_INT, MPI_ANY_SOURCE, 7, world));
        FAILS(MPI_ERR_TYPE, MPI_Send(place, 2, MPI_DATATYPE_NULL, next, 7, world));
        SUCCEEDS(MPI_Send(place, 2, MPI_INT, MPI_PROC_NULL, 7, world));
        SUCCEEDS(MPI_Recv(place, 2, MPI_INT, MPI_PROC_NULL, 7, world, &status));
        CHECK_EQUAL(status.MPI_SOURCE, MPI_PROC_NULL);

        /* Too long a message. */
        SUCCEEDS(MPI_Send(place, 2, MPI_INT, next, 8, world));
        FAILS(MPI_ERR_TRUNCATE, MPI_Recv(&other, 1, MPI_INT, previous, 8, world, &status));

        /* Wildcards. */
        place[0] = 100 + rank;
        SUCCEEDS(MPI_Send(place, 2, MPI_INT, next, 9, world));
        SUCCEEDS(MPI_Recv(place + 2, 2, MPI_INT, MPI_ANY_SOURCE, 9, world, &status));
        CHECK_EQUAL(status.MPI_SOURCE, previous);
        SUCCEEDS(MPI_Send(place, 2, MPI_INT, next, 9, world));
        SUCCEEDS(MPI_Recv(place + 2, 2, MPI_INT, previous, MPI_ANY_TAG, world, &status));
        CHECK_EQUAL(status.MPI_TAG, 9);
        CHECK_EQUAL(place[2], 100 + previous);
    }
}

/* The same call with other datatypes and counts, with gaps and without, and an address that is not where the data starts. */
static void shapes(void)
{
    int out[8], in[8];
    MPI_Datatype gaps, later;
    SUCCEEDS(MPI_Type_vector(2, 1, 3, MPI_INT, &gaps));
    SUCCEEDS(MPI_Type_commit(&gaps));
    MPI_Aint at = 2 * sizeof(int);
    int one = 1;
    SUCCEEDS(MPI_Type_create_hindexed(1, &one, &at, MPI_INT, &later));
    FAILS(MPI_ERR_TYPE, MPI_Send(out, 1, later, next, 1, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Type_commit(&later));
    for (int turn = 0; turn < 4; turn++) {
        for (int index = 0; index < 8; index++) {
            out[index] = 10 * rank + index;
            in[index] = -1;
        }
        SUCCEEDS(MPI_Send(out, 1, gaps, next, 1, MPI_COMM_WORLD));
        SUCCEEDS(MPI_Recv(in, 1, gaps, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(in[0] == 10 * previous && in[1] == -1 && in[3] == 10 * previous + 3, "%d %d %d", in[0], in[1], in[3]);
        SUCCEEDS(MPI_Send(out, 1, later, next, 1, MPI_COMM_WORLD));
        SUCCEEDS(MPI_Recv(in + 3, 1, later, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(in[5] == 10 * previous + 2 && in[4] == -1, "%d", in[5]);
        SUCCEEDS(MPI_Send(out, 0, MPI_INT, next, 1, MPI_COMM_WORLD));
        MPI_Status status;
        SUCCEEDS(MPI_Recv(in, 1, MPI_INT, previous, 1, MPI_COMM_WORLD, &status));
        int count;
        SUCCEEDS(MPI_Get_count(&status, MPI_INT, &count));
        CHECK_EQUAL(count, 0);
        CHECK_EQUAL(in[0], 10 * previous);
    }
    SUCCEEDS(MPI_Type_free(&gaps));
    SUCCEEDS(MPI_Type_free(&later));
}

/* A bad handle among several. */
static void bad_among_good(void)
{
    int place[3], number = 4;
    MPI_Request requests[3], stale;
    SUCCEEDS(MPI_Irecv(&place[0], 1, MPI_INT, previous, 3, MPI_COMM_WORLD, &requests[0]));
    stale = requests[0];
    SUCCEEDS(MPI_Send(&number, 1, MPI_INT, next, 3, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    for (int turn = 0; turn < 2; turn++) {
        SUCCEEDS(MPI_Irecv(&place[0], 1, MPI_INT, previous, 3, MPI_COMM_WORLD, &requests[0]));
        SUCCEEDS(MPI_Irecv(&place[2], 1, MPI_INT, previous, 4, MPI_COMM_WORLD, &requests[2]));
        requests[1] = turn == 0 ? stale : MPI_REQUEST_NULL;
        SUCCEEDS(MPI_Send(&number, 1, MPI_INT, next, 3, MPI_COMM_WORLD));
        SUCCEEDS(MPI_Send(&number, 1, MPI_INT, next, 4, MPI_COMM_WORLD));
        if (turn == 0) {
            FAILS(MPI_ERR_REQUEST, MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
            CHECK(requests[2] != MPI_REQUEST_NULL, "behind the bad one");
            requests[1] = MPI_REQUEST_NULL;
        }
        SUCCEEDS(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
        CHECK(place[0] == 4 && place[2] == 4, "%d and %d", place[0], place[2]);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    rank = check_rank;
    size = check_size;
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    handles_again();
    wrong();
    shapes();
    bad_among_good();
    return check_end("again");
}
