/*
 * Blocking collectives one right after the other, of many sorts, lengths and roots, with nothing between them; mixed with
 * messages and with nonblocking collectives that are under way; on communicators that come and go; and by two threads at
 * once, each on its own communicator.
 */
#include "check.h"
#include <pthread.h>

static int rounds;

static uint64_t mix(uint64_t seed)
{
    seed ^= seed >> 33;
    seed *= 0xff51afd7ed558ccdULL;
    seed ^= seed >> 29;
    return seed;
}

static int64_t value_of(int rank, int index, int step) { return (int64_t)(mix((uint64_t)rank * 1000003u + (uint64_t)index * 31u + (uint64_t)step) >> 20); }

static const int lengths[] = {1, 0, 3, 1, 6, 7, 1, 600, 2, 5000, 1, 20000};

/* How many elements go from one rank to another in this step, and as many back. */
static int between(int one, int other, int step, int size)
{
    int less = one < other ? one : other, more = one + other - less;
    int count = lengths[mix((uint64_t)(less * 1000 + more) * 7919u + (uint64_t)step) % 12];
    return size > 8 && count > 600 ? 600 : count;
}

/* One of the collectives whose blocks differ: gatherv, scatterv, alltoallv, alltoallw. What is long goes by message, the rest does not. */
static void varied(MPI_Comm comm, int sort, int root, int in_place, int step)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int counts[64], places[64], in_bytes[64], all = 0;
    MPI_Datatype types[64];
    for (int peer = 0; peer < size; peer++)
        counts[peer] = between(sort < 2 ? root : rank, peer, step, size);
    /* The blocks lie in another order than the ranks, with gaps. */
    for (int peer = size - 1; peer >= 0; peer--) {
        places[peer] = all;
        in_bytes[peer] = all * (int)sizeof(int64_t);
        types[peer] = MPI_INT64_T;
        all += counts[peer] + 1;
    }
    int mine = between(root, rank, step, size), is_root = rank == root;
    int64_t *in = malloc((size_t)all * sizeof *in), *out = malloc((size_t)all * sizeof *out), *own = malloc((size_t)(mine + 1) * sizeof *own);
    memset(out, -1, (size_t)all * sizeof *out);
    for (int peer = 0; peer < size; peer++)
        for (int index = 0; index < counts[peer]; index++)
            in[places[peer] + index] = value_of(rank, 100 * peer + index, step);
    for (int index = 0; index < mine; index++)
        own[index] = value_of(rank, index, step);
    if (sort == 0) {
        if (in_place)
            memcpy(out + places[root], own, (size_t)(is_root ? mine : 0) * sizeof *own);
        MPI_Gatherv(in_place && is_root ? MPI_IN_PLACE : own, mine, MPI_INT64_T, is_root ? out : NULL, counts, places, MPI_INT64_T, root, comm);
        for (int from = 0; is_root && from < size; from++)
            for (int index = 0; index < counts[from]; index++)
                CHECK(out[places[from] + index] == value_of(from, index, step), "gatherv step %d from %d index %d", step, from, index);
    } else if (sort == 1) {
        MPI_Scatterv(is_root ? in : NULL, counts, places, MPI_INT64_T, in_place && is_root ? MPI_IN_PLACE : own, mine, MPI_INT64_T, root, comm);
        for (int index = 0; !(in_place && is_root) && index < mine; index++)
            CHECK(own[index] == value_of(root, 100 * rank + index, step), "scatterv step %d index %d", step, index);
    } else {
        if (in_place)
            memcpy(out, in, (size_t)all * sizeof *in);
        const void *from_where = in_place ? MPI_IN_PLACE : (void *)in;
        if (sort == 2)
            MPI_Alltoallv(from_where, counts, places, MPI_INT64_T, out, counts, places, MPI_INT64_T, comm);
        else
            MPI_Alltoallw(from_where, counts, in_bytes, types, out, counts, in_bytes, types, comm);
        for (int from = 0; from < size; from++)
            for (int index = 0; index < counts[from]; index++)
                CHECK(out[places[from] + index] == value_of(from, 100 * rank + index, step), "alltoallv step %d from %d index %d", step, from, index);
    }
    for (int peer = 0; sort != 1 && !in_place && (sort > 1 || is_root) && peer < size; peer++)
        CHECK(out[places[peer] + counts[peer]] == -1, "step %d: something stands behind the block of %d", step, peer);
    free(in);
    free(out);
    free(own);
}

/* One collective, chosen by `step`, the same at every rank. */
static void one(MPI_Comm comm, int step)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    uint64_t chosen = mix((uint64_t)step + 77);
    int count = lengths[chosen % 12], sort = (int)(chosen / 16 % 12), root = (int)(chosen / 256 % (uint64_t)size), in_place = (int)(chosen / 65536 % 2);
    if (sort >= 8) {
        varied(comm, sort - 8, root, in_place, step);
        return;
    }
    if (size > 8 && count > 600)
        count = 600;
    size_t all = (size_t)count * (size_t)size + 1;
    int64_t *in = malloc(all * sizeof *in), *out = malloc(all * sizeof *out);
    for (size_t index = 0; index < all; index++) {
        in[index] = value_of(rank, (int)index, step);
        out[index] = in_place ? in[index] : -1;
    }
    switch (sort) {
    case 0:
        MPI_Barrier(comm);
        break;
    case 1:
        if (rank != root)
            memset(in, 0, all * sizeof *in);
        MPI_Bcast(in, count, MPI_INT64_T, root, comm);
        for (int index = 0; index < count; index++)
            CHECK(in[index] == value_of(root, index, step), "bcast step %d index %d", step, index);
        break;
    case 2:
        MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, count, MPI_INT64_T, MPI_SUM, comm);
        for (int index = 0; index < count; index++) {
            int64_t sum = 0;
            for (int from = 0; from < size; from++)
                sum += value_of(from, index, step);
            CHECK(out[index] == sum, "allreduce step %d index %d", step, index);
        }
        break;
    case 3:
        if (in_place)
            memcpy(out + (size_t)rank * (size_t)count, in, (size_t)count * sizeof *in);
        MPI_Allgather(in_place ? MPI_IN_PLACE : in, count, MPI_INT64_T, out, count, MPI_INT64_T, comm);
        for (int from = 0; from < size; from++)
            for (int index = 0; index < count; index++)
                CHECK(out[from * count + index] == value_of(from, index, step), "allgather step %d from %d", step, from);
        break;
    case 4:
        MPI_Alltoall(in_place ? MPI_IN_PLACE : in, count, MPI_INT64_T, out, count, MPI_INT64_T, comm);
        for (int from = 0; from < size; from++)
            for (int index = 0; index < count; index++)
                CHECK(out[from * count + index] == value_of(from, rank * count + index, step), "alltoall step %d from %d", step, from);
        break;
    case 5:
        MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : in, out, count, MPI_INT64_T, MPI_MAX, comm);
        for (int index = 0; index < count; index++) {
            int64_t most = INT64_MIN;
            for (int from = 0; from < size; from++)
                if (value_of(from, rank * count + index, step) > most)
                    most = value_of(from, rank * count + index, step);
            CHECK(out[index] == most, "reduce_scatter step %d index %d", step, index);
        }
        break;
    case 6:
        MPI_Reduce(in_place && rank == root ? MPI_IN_PLACE : in, rank == root ? out : NULL, count, MPI_INT64_T, MPI_MIN, root, comm);
        for (int index = 0; rank == root && index < count; index++) {
            int64_t least = INT64_MAX;
            for (int from = 0; from < size; from++)
                if (value_of(from, index, step) < least)
                    least = value_of(from, index, step);
            CHECK(out[index] == least, "reduce step %d index %d", step, index);
        }
        break;
    default:
        MPI_Exscan(in_place ? MPI_IN_PLACE : in, out, count, MPI_INT64_T, MPI_BXOR, comm);
        for (int index = 0; rank > 0 && index < count; index++) {
            int64_t sum = 0;
            for (int from = 0; from < rank; from++)
                sum ^= value_of(from, index, step);
            CHECK(out[index] == sum, "exscan step %d index %d", step, index);
        }
    }
    free(in);
    free(out);
}

/* Messages that are under way during collectives: to the next rank, unexpected and expected, short and long. */
static void with_messages(MPI_Comm comm)
{
    enum { LONG = 300000 };
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, length = size > 8 ? LONG / 30 : LONG;
    char *out = malloc((size_t)length), *in = malloc((size_t)length);
    for (int round = 0; round < rounds; round++) {
        MPI_Request requests[4], sum;
        int64_t token = rank * 1000 + round, heard = -1, one_each = 1, number = 0;
        memset(out, rank + round, (size_t)length);
        MPI_Isend(out, length, MPI_BYTE, next, round, comm, &requests[0]);
        one(comm, 3 * round);
        MPI_Irecv(in, length, MPI_BYTE, previous, round, comm, &requests[1]);
        MPI_Isend(&token, 1, MPI_INT64_T, next, 50000 + round, comm, &requests[2]);
        MPI_Iallreduce(&one_each, &number, 1, MPI_INT64_T, MPI_SUM, comm, &sum);
        one(comm, 3 * round + 1);
        MPI_Irecv(&heard, 1, MPI_INT64_T, previous, 50000 + round, comm, &requests[3]);
        one(comm, 3 * round + 2);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        MPI_Wait(&sum, MPI_STATUS_IGNORE);
        CHECK_EQUAL(number, size);
        CHECK_EQUAL(heard, previous * 1000 + round);
        for (int index = 0; index < length; index += 997)
            CHECK_EQUAL(in[index], (char)(previous + round));
    }
    free(out);
    free(in);
}

/* One rank computes or sends to itself while the others wait in a collective. */
static void latecomers(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int round = 0; round < 5; round++) {
        if (rank == round % size)
            usleep(2000);
        one(comm, round);
        MPI_Barrier(comm);
    }
}

static void *many(void *comm)
{
    for (int step = 0; step < 5 * rounds; step++)
        one(*(MPI_Comm *)comm, step);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    rounds = argc > 1 ? atoi(argv[1]) : 100;
    for (int step = 0; step < 20 * rounds; step++)
        one(MPI_COMM_WORLD, step);
    with_messages(MPI_COMM_WORLD);
    latecomers(MPI_COMM_WORLD);

    /* More communicators than there is room for at once, and again when they are gone. */
    enum { ALIVE = 150 };
    static MPI_Comm comms[ALIVE];
    int alive = check_size > 8 ? 10 : ALIVE;
    for (int again = 0; again < 2; again++) {
        for (int index = 0; index < alive; index++) {
            MPI_Comm_split(MPI_COMM_WORLD, index % 3 && check_rank % 2, index % 2 ? -check_rank : 0, &comms[index]);
            one(comms[index], index + again);
        }
        for (int index = alive - 1; index >= 0; index--) {
            one(comms[index], index);
            MPI_Comm_free(&comms[index]);
        }
    }

    if (provided == MPI_THREAD_MULTIPLE) {
        MPI_Comm pair[2];
        pthread_t thread;
        MPI_Comm_dup(MPI_COMM_WORLD, &pair[0]);
        MPI_Comm_dup(MPI_COMM_WORLD, &pair[1]);
        pthread_create(&thread, NULL, many, &pair[1]);
        many(&pair[0]);
        pthread_join(thread, NULL);
        MPI_Comm_free(&pair[0]);
        MPI_Comm_free(&pair[1]);
    }
    return check_end("collectives_board");
}
