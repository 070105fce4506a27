/* Every collective against a sequential oracle, blocking, nonblocking and persistent, on the world, on halves of it and in reverse order, at several sizes. */
#include "check.h"

static int rank, size;
static MPI_Comm comm;

/* The value at place `index` of the block that `from` has for `to`. */
static long value_of(int from, int to, int index, int round)
{
    return (long)(from * 1000003L + to * 1009L + index * 7L + round);
}

static void *allocate(size_t count) { return malloc(count ? count * sizeof(long) : 1); }

/* How often a blocking call is made in a row: what is made for one and kept for the next of its sort is all to be right. */
static int times = 1;

/* Blocking, nonblocking or persistent, as `form` says. */
#define EACH_FORM(Name, name, ...)                                                                  \
    do {                                                                                            \
        MPI_Request request;                                                                        \
        if (form <= 0) {                                                                            \
            for (int time = 0; time < times; time++)                                                \
                MPI_##Name(__VA_ARGS__);                                                            \
        } else if (form == 1) {                                                                     \
            MPI_I##name(__VA_ARGS__, &request);                                                     \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                                                     \
        } else {                                                                                    \
            MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request);                                \
            MPI_Start(&request);                                                                    \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                                                     \
            MPI_Request_free(&request);                                                             \
        }                                                                                           \
    } while (0)

static void rooted(int count, int form, int round)
{
    for (int root = 0; root < size; root += size > 8 ? 3 : 1) {
        long *mine = allocate((size_t)count), *all = allocate((size_t)count * (size_t)size);
        for (int index = 0; index < count; index++)
            mine[index] = rank == root ? value_of(root, 0, index, round) : -1;
        EACH_FORM(Bcast, bcast, mine, count, MPI_LONG, root, comm);
        for (int index = 0; index < count; index++)
            CHECK(mine[index] == value_of(root, 0, index, round), "bcast root %d count %d index %d", root, count, index);

        for (int index = 0; index < count; index++)
            mine[index] = value_of(rank, root, index, round);
        EACH_FORM(Gather, gather, mine, count, MPI_LONG, all, count, MPI_LONG, root, comm);
        if (rank == root)
            for (int from = 0; from < size; from++)
                for (int index = 0; index < count; index++)
                    CHECK(all[from * count + index] == value_of(from, root, index, round), "gather root %d from %d", root, from);

        if (rank == root)
            for (int to = 0; to < size; to++)
                for (int index = 0; index < count; index++)
                    all[to * count + index] = value_of(root, to, index, round);
        EACH_FORM(Scatter, scatter, all, count, MPI_LONG, mine, count, MPI_LONG, root, comm);
        for (int index = 0; index < count; index++)
            CHECK(mine[index] == value_of(root, rank, index, round), "scatter root %d", root);

        for (int index = 0; index < count; index++)
            mine[index] = value_of(rank, 0, index, round);
        EACH_FORM(Reduce, reduce, mine, all, count, MPI_LONG, MPI_SUM, root, comm);
        if (rank == root)
            for (int index = 0; index < count; index++) {
                long sum = 0;
                for (int from = 0; from < size; from++)
                    sum += value_of(from, 0, index, round);
                CHECK(all[index] == sum, "reduce root %d index %d: %ld, expected %ld", root, index, all[index], sum);
            }
        /* In place at the root. */
        long *place = allocate((size_t)count);
        memcpy(place, mine, (size_t)count * sizeof(long));
        EACH_FORM(Reduce, reduce, rank == root ? MPI_IN_PLACE : place, place, count, MPI_LONG, MPI_MAX, root, comm);
        if (rank == root)
            for (int index = 0; index < count; index++)
                CHECK_EQUAL(place[index], value_of(size - 1, 0, index, round));
        free(place);

        /* Blocks of different lengths: rank r has (r + count) % (count + 1) elements. */
        int *counts = malloc((size_t)size * sizeof(int)), *places = malloc((size_t)size * sizeof(int)), total = 0;
        for (int from = 0; from < size; from++) {
            counts[from] = (from + count) % (count + 1);
            places[from] = total;
            total += counts[from] + 1;
        }
        long *varied = allocate((size_t)total + 1);
        for (int index = 0; index <= total; index++)
            varied[index] = -5;
        EACH_FORM(Gatherv, gatherv, mine, counts[rank], MPI_LONG, varied, counts, places, MPI_LONG, root, comm);
        if (rank == root)
            for (int from = 0; from < size; from++) {
                for (int index = 0; index < counts[from]; index++)
                    CHECK(varied[places[from] + index] == value_of(from, 0, index, round), "gatherv from %d", from);
                CHECK_EQUAL(varied[places[from] + counts[from]], -5);
            }
        memset(mine, 0, (size_t)count * sizeof(long));
        EACH_FORM(Scatterv, scatterv, varied, counts, places, MPI_LONG, mine, counts[rank], MPI_LONG, root, comm);
        for (int index = 0; index < counts[rank]; index++)
            CHECK(mine[index] == value_of(rank, 0, index, round), "scatterv root %d", root);
        free(counts);
        free(places);
        free(varied);
        free(mine);
        free(all);
    }
}

static void to_all(int count, int form, int round)
{
    size_t whole = (size_t)count * (size_t)size;
    long *mine = allocate(whole), *all = allocate(whole);
    for (int index = 0; index < count; index++)
        mine[index] = value_of(rank, 0, index, round);
    EACH_FORM(Allgather, allgather, mine, count, MPI_LONG, all, count, MPI_LONG, comm);
    for (int from = 0; from < size; from++)
        for (int index = 0; index < count; index++)
            CHECK(all[from * count + index] == value_of(from, 0, index, round), "allgather from %d index %d", from, index);
    memset(all, 0, whole * sizeof(long));
    memcpy(all + rank * count, mine, (size_t)count * sizeof(long));
    EACH_FORM(Allgather, allgather, MPI_IN_PLACE, 0, MPI_LONG, all, count, MPI_LONG, comm);
    for (int from = 0; from < size; from++)
        for (int index = 0; index < count; index++)
            CHECK(all[from * count + index] == value_of(from, 0, index, round), "allgather in place from %d", from);

    EACH_FORM(Allreduce, allreduce, mine, all, count, MPI_LONG, MPI_SUM, comm);
    for (int index = 0; index < count; index++) {
        long sum = 0;
        for (int from = 0; from < size; from++)
            sum += value_of(from, 0, index, round);
        CHECK(all[index] == sum, "allreduce index %d: %ld, expected %ld", index, all[index], sum);
    }
    memcpy(all, mine, (size_t)count * sizeof(long));
    EACH_FORM(Allreduce, allreduce, MPI_IN_PLACE, all, count, MPI_LONG, MPI_MIN, comm);
    for (int index = 0; index < count; index++)
        CHECK_EQUAL(all[index], value_of(0, 0, index, round));

    EACH_FORM(Scan, scan, mine, all, count, MPI_LONG, MPI_SUM, comm);
    for (int index = 0; index < count; index++) {
        long sum = 0;
        for (int from = 0; from <= rank; from++)
            sum += value_of(from, 0, index, round);
        CHECK(all[index] == sum, "scan index %d: %ld, expected %ld", index, all[index], sum);
    }
    memcpy(all, mine, (size_t)count * sizeof(long));
    /* A second time would be of other operands. */
    int more = times;
    times = 1;
    EACH_FORM(Exscan, exscan, MPI_IN_PLACE, all, count, MPI_LONG, MPI_SUM, comm);
    times = more;
    for (int index = 0; index < count && rank > 0; index++) {
        long sum = 0;
        for (int from = 0; from < rank; from++)
            sum += value_of(from, 0, index, round);
        CHECK(all[index] == sum, "exscan index %d: %ld, expected %ld", index, all[index], sum);
    }

    for (int to = 0; to < size; to++)
        for (int index = 0; index < count; index++)
            mine[to * count + index] = value_of(rank, to, index, round);
    EACH_FORM(Alltoall, alltoall, mine, count, MPI_LONG, all, count, MPI_LONG, comm);
    for (int from = 0; from < size; from++)
        for (int index = 0; index < count; index++)
            CHECK(all[from * count + index] == value_of(from, rank, index, round), "alltoall from %d index %d", from, index);
    memcpy(all, mine, whole * sizeof(long));
    EACH_FORM(Alltoall, alltoall, MPI_IN_PLACE, 0, MPI_LONG, all, count, MPI_LONG, comm);
    for (int from = 0; from < size; from++)
        for (int index = 0; index < count; index++)
            CHECK(all[from * count + index] == value_of(from, rank, index, round), "alltoall in place from %d", from);

    EACH_FORM(Reduce_scatter_block, reduce_scatter_block, mine, all, count, MPI_LONG, MPI_SUM, comm);
    for (int index = 0; index < count; index++) {
        long sum = 0;
        for (int from = 0; from < size; from++)
            sum += value_of(from, rank, index, round);
        CHECK(all[index] == sum, "reduce_scatter_block index %d: %ld, expected %ld", index, all[index], sum);
    }
    free(mine);
    free(all);
}

static void varied_to_all(int count, int form, int round)
{
    /* From i to j go (i + 2 j + count) % (count + 1) elements. */
    int *sends = malloc((size_t)size * sizeof(int)), *receives = malloc((size_t)size * sizeof(int));
    int *send_places = malloc((size_t)size * sizeof(int)), *receive_places = malloc((size_t)size * sizeof(int));
    MPI_Datatype *types = malloc((size_t)size * sizeof(MPI_Datatype));
    int send_total = 0, receive_total = 0;
    for (int peer = 0; peer < size; peer++) {
        sends[peer] = (rank + 2 * peer + count) % (count + 1);
        receives[peer] = (peer + 2 * rank + count) % (count + 1);
        send_places[peer] = send_total;
        receive_places[peer] = receive_total;
        send_total += sends[peer];
        receive_total += receives[peer];
        types[peer] = MPI_LONG;
    }
    long *data = allocate((size_t)send_total), *got = allocate((size_t)receive_total);
    for (int peer = 0; peer < size; peer++)
        for (int index = 0; index < sends[peer]; index++)
            data[send_places[peer] + index] = value_of(rank, peer, index, round);
    EACH_FORM(Alltoallv, alltoallv, data, sends, send_places, MPI_LONG, got, receives, receive_places, MPI_LONG, comm);
    for (int peer = 0; peer < size; peer++)
        for (int index = 0; index < receives[peer]; index++)
            CHECK(got[receive_places[peer] + index] == value_of(peer, rank, index, round), "alltoallv from %d", peer);
    memset(got, 0, (size_t)receive_total * sizeof(long));
    for (int peer = 0; peer < size; peer++) {
        send_places[peer] *= (int)sizeof(long);
        receive_places[peer] *= (int)sizeof(long);
    }
    EACH_FORM(Alltoallw, alltoallw, data, sends, send_places, types, got, receives, receive_places, types, comm);
    for (int peer = 0; peer < size; peer++)
        for (int index = 0; index < receives[peer]; index++)
            CHECK(got[receive_places[peer] / (int)sizeof(long) + index] == value_of(peer, rank, index, round), "alltoallw from %d", peer);

    /* Allgatherv and reduce_scatter with the counts that this communicator's ranks agree on. */
    int total = 0;
    for (int peer = 0; peer < size; peer++) {
        receives[peer] = (peer * 3 + count) % (count + 2);
        receive_places[peer] = total;
        total += receives[peer];
    }
    long *mine = allocate((size_t)total), *all = allocate((size_t)total);
    for (int index = 0; index < receives[rank]; index++)
        mine[index] = value_of(rank, 0, index, round);
    EACH_FORM(Allgatherv, allgatherv, mine, receives[rank], MPI_LONG, all, receives, receive_places, MPI_LONG, comm);
    for (int peer = 0; peer < size; peer++)
        for (int index = 0; index < receives[peer]; index++)
            CHECK(all[receive_places[peer] + index] == value_of(peer, 0, index, round), "allgatherv from %d", peer);
    for (int index = 0; index < total; index++)
        mine[index] = value_of(rank, 0, index, round);
    EACH_FORM(Reduce_scatter, reduce_scatter, mine, all, receives, MPI_LONG, MPI_SUM, comm);
    for (int index = 0; index < receives[rank]; index++) {
        long sum = 0;
        for (int from = 0; from < size; from++)
            sum += value_of(from, 0, receive_places[rank] + index, round);
        CHECK(all[index] == sum, "reduce_scatter index %d: %ld, expected %ld", index, all[index], sum);
    }
    free(sends);
    free(receives);
    free(send_places);
    free(receive_places);
    free(types);
    free(data);
    free(got);
    free(mine);
    free(all);
}

static void on(MPI_Comm which)
{
    static const int counts[] = {0, 1, 3, 17, 600, 9000};
    comm = which;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int form = -1; form < 3; form++)
        for (int index = 0; index < 6; index++) {
            if (counts[index] * size > 40000)
                continue;
            /* Three times, also where data is exchanged in place. */
            times = form < 0 ? 3 : 1;
            rooted(counts[index], form, index);
            to_all(counts[index], form, index);
            varied_to_all(counts[index], form, index);
            EACH_FORM(Barrier, barrier, comm);
        }
}

/* Many nonblocking collectives in flight on one communicator, completed in another order. */
static void many_in_flight(void)
{
    enum { count = 40 };
    MPI_Request requests[count];
    long in[count], out[count];
    comm = MPI_COMM_WORLD;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    for (int index = 0; index < count; index++) {
        in[index] = rank + index;
        if (index % 3 == 0)
            MPI_Iallreduce(&in[index], &out[index], 1, MPI_LONG, MPI_SUM, comm, &requests[index]);
        else if (index % 3 == 1) {
            out[index] = rank == index % size ? index : -1;
            MPI_Ibcast(&out[index], 1, MPI_LONG, index % size, comm, &requests[index]);
        } else
            MPI_Iscan(&in[index], &out[index], 1, MPI_LONG, MPI_SUM, comm, &requests[index]);
    }
    for (int index = count - 1; index >= 0; index--)
        MPI_Wait(&requests[index], MPI_STATUS_IGNORE);
    for (int index = 0; index < count; index++) {
        long all = (long)size * (size - 1) / 2 + (long)size * index, until = (long)rank * (rank + 1) / 2 + (long)(rank + 1) * index;
        CHECK_EQUAL(out[index], index % 3 == 0 ? all : index % 3 == 1 ? index : until);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    on(MPI_COMM_WORLD);
    on(MPI_COMM_SELF);
    MPI_Comm half, reversed;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &half);
    on(half);
    MPI_Comm_free(&half);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, &reversed);
    MPI_Comm_rank(reversed, &rank);
    CHECK_EQUAL(rank, check_size - 1 - check_rank);
    on(reversed);
    MPI_Comm_free(&reversed);
    many_in_flight();
    return check_end("collectives");
}
