/* Persistent collectives: made once and started many times, in any order, together with others; what is freed early; what is
   refused. */
#include "check.h"

enum { LENGTH = 20000 };

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

/* The buffers are looked at anew at every start; the counts were looked at when it was made. */
static void again_and_again(void)
{
    int *in = malloc(LENGTH * sizeof(int)), *out = malloc(LENGTH * sizeof(int)), flag;
    int *counts = malloc(sizeof(int) * (size_t)check_size), *places = malloc(sizeof(int) * (size_t)check_size), *all = malloc(sizeof(int) * (size_t)check_size);
    MPI_Request sum, gather;
    MPI_Status status;
    for (int rank = 0; rank < check_size; rank++) {
        counts[rank] = 1;
        places[rank] = check_size - 1 - rank;
    }
    SUCCEEDS(MPI_Allreduce_init(in, out, LENGTH, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &sum));
    SUCCEEDS(MPI_Allgatherv_init(in, 1, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &gather));
    free(counts);
    free(places);
    status.MPI_SOURCE = 5;
    SUCCEEDS(MPI_Test(&sum, &flag, &status));
    CHECK(flag && status.MPI_SOURCE == MPI_ANY_SOURCE && sum != MPI_REQUEST_NULL, "an inactive request is complete");
    for (int turn = 0; turn < 30; turn++) {
        for (int index = 0; index < LENGTH; index++)
            in[index] = index + turn * check_rank;
        SUCCEEDS(MPI_Start(&sum));
        if (turn % 3 == 0)
            SUCCEEDS(MPI_Start(&gather));
        if (turn % 2) {
            SUCCEEDS(MPI_Wait(&sum, MPI_STATUS_IGNORE));
        } else {
            do
                SUCCEEDS(MPI_Test(&sum, &flag, MPI_STATUS_IGNORE));
            while (!flag);
        }
        for (int index = 0; index < LENGTH; index++)
            CHECK_EQUAL(out[index], check_size * index + turn * check_size * (check_size - 1) / 2);
        if (turn % 3 == 0) {
            SUCCEEDS(MPI_Wait(&gather, MPI_STATUS_IGNORE));
            for (int rank = 0; rank < check_size; rank++)
                CHECK_EQUAL(all[check_size - 1 - rank], turn * rank);
        }
    }
    SUCCEEDS(MPI_Request_free(&sum));
    SUCCEEDS(MPI_Request_free(&gather));
    CHECK(sum == MPI_REQUEST_NULL && gather == MPI_REQUEST_NULL, "freed");
    free(all);
    free(in);
    free(out);
}

/* Each rank starts several in an order of its own, and other collectives go on between. */
static void any_order(void)
{
    enum { MANY = 6 };
    int in[MANY], out[MANY], sum, one = 1;
    MPI_Request requests[MANY], reversed[MANY];
    MPI_Comm comm;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int index = 0; index < MANY; index++)
        if (index % 2)
            SUCCEEDS(MPI_Allreduce_init(&in[index], &out[index], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[index]));
        else
            SUCCEEDS(MPI_Scan_init(&in[index], &out[index], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[index]));
    SUCCEEDS(MPI_Comm_free(&comm));
    for (int turn = 0; turn < 40; turn++) {
        for (int index = 0; index < MANY; index++) {
            in[index] = 10 * index + turn;
            reversed[MANY - 1 - index] = requests[index];
        }
        int shift = check_rank % MANY;
        if (turn % 4 == 0)
            SUCCEEDS(MPI_Startall(MANY, check_rank & 1 ? reversed : requests));
        else
            for (int index = 0; index < MANY; index++) {
                MPI_Request *next = &requests[(index + shift) % MANY];
                SUCCEEDS(MPI_Start(next));
            }
        SUCCEEDS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK_EQUAL(sum, check_size);
        if (turn % 2) {
            SUCCEEDS(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
        } else {
            int done = 0, count, indices[MANY];
            while (done < MANY) {
                SUCCEEDS(MPI_Waitsome(MANY, requests, &count, indices, MPI_STATUSES_IGNORE));
                CHECK(count > 0 && count != MPI_UNDEFINED, "an active request is left");
                done += count;
            }
            SUCCEEDS(MPI_Waitsome(MANY, requests, &count, indices, MPI_STATUSES_IGNORE));
            CHECK_EQUAL(count, MPI_UNDEFINED);
        }
        for (int index = 0; index < MANY; index++)
            CHECK_EQUAL(out[index], (10 * index + turn) * (index % 2 ? check_size : check_rank + 1));
    }
    for (int index = 0; index < MANY; index++)
        SUCCEEDS(MPI_Request_free(&requests[index]));
}

/* Along a grid, with point-to-point requests in the same list; a request that is freed while it is active completes. */
static void on_a_grid(void)
{
    int dims[1] = {check_size}, periods[1] = {1}, out[2], got, rank, before, after;
    int *late = malloc(2 * LENGTH * sizeof(int)), *sent = malloc(LENGTH * sizeof(int));
    MPI_Comm grid;
    MPI_Request requests[4], freed;
    SUCCEEDS(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid));
    SUCCEEDS(MPI_Comm_rank(grid, &rank));
    SUCCEEDS(MPI_Cart_shift(grid, 0, 1, &before, &after));
    int in = 0, mine = 0;
    SUCCEEDS(MPI_Neighbor_allgather_init(&in, 1, MPI_INT, out, 1, MPI_INT, grid, MPI_INFO_NULL, &requests[0]));
    SUCCEEDS(MPI_Send_init(&mine, 1, MPI_INT, after, 3, grid, &requests[1]));
    SUCCEEDS(MPI_Recv_init(&got, 1, MPI_INT, before, 3, grid, &requests[2]));
    SUCCEEDS(MPI_Barrier_init(grid, MPI_INFO_NULL, &requests[3]));
    for (int turn = 0; turn < 20; turn++) {
        in = 1000 * turn + rank;
        mine = -in;
        SUCCEEDS(MPI_Startall(4, requests));
        SUCCEEDS(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        CHECK(out[0] == 1000 * turn + before && out[1] == 1000 * turn + after && got == -(1000 * turn + before), "turn %d", turn);
    }
    for (int index = 0; index < 4; index++)
        SUCCEEDS(MPI_Request_free(&requests[index]));
    for (int index = 0; index < LENGTH; index++)
        sent[index] = rank;
    SUCCEEDS(MPI_Neighbor_allgather_init(sent, LENGTH, MPI_INT, late, LENGTH, MPI_INT, grid, MPI_INFO_NULL, &freed));
    SUCCEEDS(MPI_Start(&freed));
    SUCCEEDS(MPI_Request_free(&freed));
    SUCCEEDS(MPI_Comm_free(&grid));
    /* It is complete at the latest when MPI_Finalize is: the buffers stay. */
}

static void refusals(void)
{
    int in = 0, out = 0;
    MPI_Request request;
    expect(MPI_Bcast_init(&in, 1, MPI_INT, check_size, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_ROOT, "root", "a wrong root");
    expect(MPI_Neighbor_alltoall_init(&in, 1, MPI_INT, &out, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_TOPOLOGY, "topology", "no topology");
    expect(MPI_Allreduce_init(&in, &out, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_COUNT, "count", "a negative count");
    SUCCEEDS(MPI_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    SUCCEEDS(MPI_Start(&request));
    expect(MPI_Start(&request), MPI_ERR_REQUEST, "active", "a start of what is active");
    expect(MPI_Cancel(&request), MPI_ERR_REQUEST, "cancelled", "the cancellation of a collective");
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Request_free(&request));
    expect(MPI_Start(&request), MPI_ERR_REQUEST, "MPI_REQUEST_NULL", "a start of nothing");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    again_and_again();
    any_order();
    on_a_grid();
    refusals();
    return check_end("persistent");
}
