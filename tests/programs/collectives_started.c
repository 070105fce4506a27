/* Nonblocking and persistent collectives between other things: some are over when they are started, some are waited for at once, some
 * after a test, among receives or in lists, and some call an operator of the program that calls MPI itself. With the argument "threads" by
 * two threads of each rank at once, each on a communicator of its own. */
#include "check.h"

#include <pthread.h>

enum { rounds = 60, longest = 700 };

static MPI_Comm aside;

/* The sum, with a message to itself in between: what it starts belongs to no collective. */
static void sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    long sent = *count, received = -1;
    MPI_Request request;
    (void)type;
    MPI_Irecv(&received, 1, MPI_LONG, 0, 1, MPI_COMM_SELF, &request);
    MPI_Send(&sent, 1, MPI_LONG, 0, 1, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(received, sent);
    for (int index = 0; index < *count; index++)
        ((long *)inout)[index] += ((long *)in)[index];
}

/* In one of the ways to complete a request. */
static void complete(MPI_Request *request, int way)
{
    MPI_Status status;
    int flag = 0, index = -1;
    switch (way % 5) {
    case 0:
        MPI_Wait(request, &status);
        break;
    case 1:
        MPI_Test(request, &flag, &status);
        MPI_Wait(request, &status);
        break;
    case 2:
        while (!flag)
            MPI_Test(request, &flag, &status);
        break;
    case 3:
        MPI_Waitall(1, request, &status);
        break;
    case 4:
        MPI_Waitany(1, request, &index, &status);
        break;
    }
}

struct part {
    MPI_Comm comm;
    MPI_Op op;
};

/* A broadcast, a reduction and a barrier on `comm`, started before and waited for beside messages to the neighbour. */
static void among_messages(const struct part *part, int round)
{
    int rank, size, count = 1 + round * 37 % longest, root;
    MPI_Comm comm = part->comm;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    root = round % size;
    long *told = calloc(longest, sizeof *told), *mine = malloc(longest * sizeof *mine), *all = calloc(longest, sizeof *all);
    long from_left = -1, to_right = round;
    for (int index = 0; index < count; index++) {
        mine[index] = rank + index;
        told[index] = rank == root ? index * 3 + round : 0;
    }
    MPI_Request requests[3], receive;
    MPI_Irecv(&from_left, 1, MPI_LONG, round % 2 ? MPI_ANY_SOURCE : (rank + size - 1) % size, round, comm, &receive);
    MPI_Ibcast(told, count, MPI_LONG, root, comm, &requests[0]);
    MPI_Iallreduce(mine, all, count, MPI_LONG, part->op, comm, &requests[1]);
    MPI_Ibarrier(comm, &requests[2]);
    MPI_Send(&to_right, 1, MPI_LONG, (rank + 1) % size, round, comm);
    if (round % 4 == 0)
        complete(&receive, round);
    for (int turn = 0; turn < 3; turn++)
        complete(&requests[(turn + round) % 3], round / 3 + turn);
    if (round % 4 != 0)
        complete(&receive, round);
    CHECK_EQUAL(from_left, round);
    for (int index = 0; index < count; index++) {
        CHECK_EQUAL(told[index], index * 3 + round);
        CHECK_EQUAL(all[index], (long)size * (size - 1) / 2 + (long)size * index);
    }
    for (int index = 0; index < 3; index++)
        CHECK(requests[index] == MPI_REQUEST_NULL, "a request is left");
    free(told);
    free(mine);
    free(all);
}

static void *each_way(void *argument)
{
    const struct part *part = argument;
    for (int round = 0; round < rounds; round++)
        among_messages(part, round);
    return NULL;
}

/* Persistent ones: started together, completed in another order, and not to be cancelled, whether they are over or not. */
static void again_and_again(MPI_Op op)
{
    long told = 0, mine, all = 0;
    MPI_Request requests[2];
    MPI_Bcast_init(&told, 1, MPI_LONG, 0, aside, MPI_INFO_NULL, &requests[0]);
    MPI_Allreduce_init(&mine, &all, 1, MPI_LONG, op, aside, MPI_INFO_NULL, &requests[1]);
    for (int round = 0; round < rounds; round++) {
        told = check_rank == 0 ? round : -1;
        mine = round + check_rank;
        MPI_Startall(2, requests);
        int refused = MPI_Cancel(&requests[round % 2]);
        CHECK_EQUAL(class_of(refused), MPI_ERR_REQUEST);
        complete(&requests[(round + 1) % 2], round);
        complete(&requests[round % 2], round + 1);
        CHECK_EQUAL(told, round);
        CHECK_EQUAL(all, (long)check_size * (check_size - 1) / 2 + (long)check_size * round);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* The communicator is given up while they are under way. */
static void without_a_handle(void)
{
    long mine = 1, all = 0;
    MPI_Request request;
    MPI_Comm gone;
    MPI_Comm_dup(MPI_COMM_WORLD, &gone);
    MPI_Iallreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, gone, &request);
    MPI_Comm_free(&gone);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(all, check_size);
}

int main(int argc, char **argv)
{
    int provided, threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    MPI_Op own;
    MPI_Op_create(sum, 1, &own);
    MPI_Comm_dup(MPI_COMM_WORLD, &aside);
    MPI_Comm_set_errhandler(aside, MPI_ERRORS_RETURN);
    struct part world = {MPI_COMM_WORLD, MPI_SUM}, other = {aside, own};
    if (threads) {
        other.op = MPI_SUM;
        pthread_t beside;
        CHECK_EQUAL(pthread_create(&beside, NULL, each_way, &other), 0);
        each_way(&world);
        CHECK_EQUAL(pthread_join(beside, NULL), 0);
    } else {
        each_way(&world);
        each_way(&other);
        again_and_again(MPI_SUM);
        again_and_again(own);
        without_a_handle();
    }
    MPI_Op_free(&own);
    MPI_Comm_free(&aside);
    return check_end("collectives_started");
}
