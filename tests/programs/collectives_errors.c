/* Wrong arguments of collectives give errors of the right class at every rank that can see them, and the communicator works afterwards. */
#include "check.h"

static void expect(int code, int class, const char *words, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    CHECK(code != MPI_SUCCESS, "%s: no error", what);
    MPI_Error_string(code, text, &length);
    CHECK(class_of(code) == class, "%s: class %d, expected %d: %s", what, class_of(code), class, text);
    CHECK(strstr(text, words) != NULL, "%s: '%s' does not say '%s'", what, text, words);
}

static void arguments(void)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int in[4] = {1, 2, 3, 4}, out[400] = {0}, counts[100], places[100];
    for (int index = 0; index < 100; index++)
        counts[index] = places[index] = 0;
    expect(MPI_Bcast(in, 1, MPI_INT, check_size, comm), MPI_ERR_ROOT, "root", "a root that is no rank");
    expect(MPI_Bcast(in, 1, MPI_INT, -1, comm), MPI_ERR_ROOT, "root", "a negative root");
    expect(MPI_Bcast(in, 1, MPI_INT, MPI_ROOT, comm), MPI_ERR_ROOT, "root", "MPI_ROOT on an intracommunicator");
    expect(MPI_Bcast(in, -1, MPI_INT, 0, comm), MPI_ERR_COUNT, "count", "a negative count");
    expect(MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, comm), MPI_ERR_TYPE, "datatype", "no datatype");
    expect(MPI_Bcast(NULL, 1, MPI_INT, 0, comm), MPI_ERR_BUFFER, "buffer", "a null buffer");
    expect(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, comm), MPI_ERR_BUFFER, "MPI_IN_PLACE", "a broadcast in place");
    expect(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM, "comm", "no communicator");
    expect(MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, comm), MPI_ERR_OP, "op", "no operator");
    expect(MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BXOR, comm), MPI_ERR_OP, "MPI_BXOR", "an operator that is not defined");
    expect(MPI_Allreduce(in, out, 1, MPI_INT, MPI_REPLACE, comm), MPI_ERR_OP, "MPI_REPLACE", "an operator for one-sided use");
    expect(MPI_Allreduce(in, in, 4, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER, "MPI_IN_PLACE", "the same buffer twice");
    expect(MPI_Allgather(out, 1, MPI_INT, out, 1, MPI_INT, comm), MPI_ERR_BUFFER, "sendbuf", "the same buffer twice");
    expect(MPI_Alltoall(in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm), MPI_ERR_BUFFER, "recvbuf", "a receive buffer in place");
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    expect(MPI_Bcast(in, 1, pair, 0, comm), MPI_ERR_TYPE, "commit", "a datatype that is not committed");
    expect(MPI_Allreduce(in, out, 1, pair, MPI_SUM, comm), MPI_ERR_TYPE, "commit", "a datatype that is not committed");
    MPI_Type_commit(&pair);
    expect(MPI_Allreduce(in, out, 1, pair, MPI_SUM, comm), MPI_ERR_OP, "MPI_Op_create", "a derived datatype");
    MPI_Type_free(&pair);
    counts[check_size - 1] = -3;
    expect(MPI_Allgatherv(in, 0, MPI_INT, out, counts, places, MPI_INT, comm), MPI_ERR_COUNT, "recvcounts[", "a negative count in an array");
    expect(MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT, "recvcounts[", "a negative count in an array");
    counts[check_size - 1] = 0;
    expect(MPI_Allgatherv(in, 0, MPI_INT, out, NULL, places, MPI_INT, comm), MPI_ERR_ARG, "recvcounts", "no counts");
    MPI_Request request;
    expect(MPI_Ibcast(in, 1, MPI_INT, check_size, comm, &request), MPI_ERR_ROOT, "root", "a root that is no rank");
}

/* The receiver has room for less, or expects more, than is sent: it hears of it, and nobody hangs. */
static void lengths(void)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int in[8] = {0}, out[800];
    int is_root = check_rank == 0;
    if (check_size == 1)
        return;
    int code = MPI_Bcast(in, is_root ? 8 : 4, MPI_INT, 0, comm);
    if (check_rank == check_size - 1)
        expect(code, MPI_ERR_TRUNCATE, "process", "a broadcast that is too long");
    code = MPI_Bcast(in, is_root ? 4 : 8, MPI_INT, 0, comm);
    if (check_rank == check_size - 1)
        expect(code, MPI_ERR_COUNT, "16 bytes", "a broadcast that is too short");
    code = MPI_Gather(in, is_root ? 4 : 5, MPI_INT, out, 4, MPI_INT, 0, comm);
    if (is_root)
        expect(code, MPI_ERR_TRUNCATE, "bytes", "a gather that is too long");
    else
        CHECK_EQUAL(code, MPI_SUCCESS);
    code = MPI_Scatter(out, 4, MPI_INT, in, is_root ? 4 : 3, MPI_INT, 0, comm);
    if (!is_root)
        expect(code, MPI_ERR_TRUNCATE, "bytes", "a scatter that is too long");
    /* The same where short blocks and long ones go different ways: whoever gives long where short is expected is not left waiting for ever
       either, nor who expects long where short is given. */
    enum { LONG = 50000 };
    int *data = calloc((size_t)LONG * (size_t)check_size, sizeof *data), *got = calloc((size_t)LONG * (size_t)check_size, sizeof *got);
    int counts[64], others[64], places[64];
    for (int given = 4; given <= LONG; given += LONG - 4) {
        int expected = given == 4 ? LONG : 4, class = given == 4 ? MPI_ERR_COUNT : MPI_ERR_TRUNCATE;
        for (int rank = 0; rank < check_size; rank++) {
            counts[rank] = expected;
            others[rank] = given;
            places[rank] = rank * LONG;
        }
        counts[0] = others[0];
        code = MPI_Gatherv(data, given, MPI_INT, got, counts, places, MPI_INT, 0, comm);
        if (is_root)
            expect(code, class, "bytes", "a gatherv with other lengths than expected");
        else
            CHECK_EQUAL(code, MPI_SUCCESS);
        code = MPI_Scatterv(data, others, places, MPI_INT, got, is_root ? given : expected, MPI_INT, 0, comm);
        if (is_root)
            CHECK_EQUAL(code, MPI_SUCCESS);
        else
            expect(code, class, "bytes", "a scatterv with other lengths than expected");
        /* Only what rank 0 gives differs. */
        for (int rank = 0; rank < check_size; rank++)
            counts[rank] = others[rank] = expected;
        for (int rank = 0; is_root && rank < check_size; rank++)
            others[rank] = rank > 0 ? given : expected;
        code = MPI_Alltoallv(data, others, places, MPI_INT, got, counts, places, MPI_INT, comm);
        if (is_root)
            CHECK_EQUAL(code, MPI_SUCCESS);
        else
            expect(code, class, "bytes", "an alltoallv with other lengths than expected");
    }
    free(data);
    free(got);
    MPI_Request request;
    code = MPI_Ialltoall(out, 2, MPI_INT, out + 400, 1, MPI_INT, comm, &request);
    CHECK_EQUAL(code, MPI_SUCCESS);
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "bytes", "blocks that are too long");
    /* All is well again. */
    int sum, one = 1;
    SUCCEEDS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQUAL(sum, check_size);
}

/* What is not significant at a rank is not looked at. */
static void insignificant(void)
{
    int mine = check_rank + 1, all[100] = {0};
    int is_root = check_rank == 0;
    void *wild = (void *)(uintptr_t)0x10;
    MPI_Datatype nothing = MPI_DATATYPE_NULL;
    SUCCEEDS(MPI_Gather(&mine, 1, MPI_INT, is_root ? all : wild, is_root ? 1 : -7, is_root ? MPI_INT : nothing, 0, MPI_COMM_WORLD));
    for (int from = 0; is_root && from < check_size; from++)
        CHECK_EQUAL(all[from], from + 1);
    SUCCEEDS(MPI_Scatter(is_root ? all : wild, is_root ? 1 : -7, is_root ? MPI_INT : nothing, &mine, 1, MPI_INT, 0, MPI_COMM_WORLD));
    CHECK_EQUAL(mine, check_rank + 1);
    SUCCEEDS(MPI_Reduce(&mine, is_root ? all : NULL, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Gather(is_root ? MPI_IN_PLACE : &mine, is_root ? -1 : 1, is_root ? nothing : MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Allgather(MPI_IN_PLACE, -1, nothing, all, 1, MPI_INT, MPI_COMM_WORLD));
    int zeros[100] = {0};
    MPI_Datatype types[100];
    for (int index = 0; index < 100; index++)
        types[index] = nothing;
    SUCCEEDS(MPI_Alltoallw(NULL, zeros, zeros, types, NULL, zeros, zeros, types, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD));
}

/* Counts so different that the ranks go different ways: the rank that hears of it first ends the job, and nobody waits for ever. */
static void fatal(int careless)
{
    if (check_rank != careless)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int count = check_rank == 0 ? 1 : 100000;
    int *in = calloc((size_t)count, sizeof *in), *out = calloc((size_t)count, sizeof *out);
    MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    sleep(30);
    CHECK(0, "the job should have ended");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (argc > 1)
        fatal(atoi(argv[1]));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* Errors that belong to no communicator go here. */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    arguments();
    insignificant();
    lengths();
    return check_end("collectives_errors");
}
