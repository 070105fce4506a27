/* Every collective on intercommunicators, blocking, nonblocking and persistent: the even ranks against the odd ones, and rank 0 against all others. */
#include "check.h"

static int rank, size, others, side;
static MPI_Comm comm;

/* What `from` on side `whose` has for `to` on the other side. */
static int value_of(int whose, int from, int to, int index)
{
    return whose * 1000000 + from * 10007 + to * 101 + index;
}

static int *allocate(int count) { return malloc(sizeof(int) * (size_t)(count > 0 ? count : 1)); }

static void fill(int *data, int count, int to)
{
    for (int index = 0; index < count; index++)
        data[index] = value_of(side, rank, to, index);
}

/* Blocking, nonblocking or persistent, as `form` says. */
#define EACH_FORM(Name, name, ...)                                                                  \
    do {                                                                                            \
        MPI_Request request;                                                                        \
        if (form == 0) {                                                                            \
            MPI_##Name(__VA_ARGS__);                                                                \
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

static long sum_of(int whose, int members, int to, int index)
{
    long sum = 0;
    for (int from = 0; from < members; from++)
        sum += value_of(whose, from, to, index);
    return sum;
}

/* The root sits at `place` on side `root_side`. */
static void rooted(int root_side, int place, int count, int form)
{
    int remote = side == root_side ? others : size;
    int giving = 1 - root_side;
    int root = side != root_side ? place : rank == place ? MPI_ROOT : MPI_PROC_NULL;
    int *mine = allocate(count), *all = allocate(count * (size + others));

    fill(mine, count, 0);
    EACH_FORM(Bcast, bcast, mine, count, MPI_INT, root, comm);
    if (root >= 0)
        for (int index = 0; index < count; index++)
            CHECK_EQUAL(mine[index], value_of(root_side, place, 0, index));

    fill(mine, count, place);
    EACH_FORM(Gather, gather, mine, count, MPI_INT, all, count, MPI_INT, root, comm);
    if (root == MPI_ROOT)
        for (int from = 0; from < remote; from++)
            for (int index = 0; index < count; index++)
                CHECK_EQUAL(all[from * count + index], value_of(giving, from, place, index));

    if (root == MPI_ROOT)
        for (int to = 0; to < remote; to++)
            fill(all + to * count, count, to);
    EACH_FORM(Scatter, scatter, all, count, MPI_INT, mine, count, MPI_INT, root, comm);
    if (root >= 0)
        for (int index = 0; index < count; index++)
            CHECK_EQUAL(mine[index], value_of(root_side, place, rank, index));

    fill(mine, count, place);
    EACH_FORM(Reduce, reduce, mine, all, count, MPI_INT, MPI_SUM, root, comm);
    if (root == MPI_ROOT)
        for (int index = 0; index < count; index++)
            CHECK_EQUAL(all[index], (int)sum_of(giving, remote, place, index));

    /* Rank r has r % 3 + count elements, written with gaps. */
    int *counts = allocate(remote), *places = allocate(remote), total = 0;
    for (int from = 0; from < remote; from++) {
        counts[from] = from % 3 + count;
        places[from] = total;
        total += counts[from] + 1;
    }
    int own = rank % 3 + count;
    int *longer = allocate(own), *varied = allocate(total);
    fill(longer, own, place);
    memset(varied, -1, sizeof(int) * (size_t)total);
    EACH_FORM(Gatherv, gatherv, longer, own, MPI_INT, varied, counts, places, MPI_INT, root, comm);
    if (root == MPI_ROOT)
        for (int from = 0; from < remote; from++) {
            for (int index = 0; index < counts[from]; index++)
                CHECK_EQUAL(varied[places[from] + index], value_of(giving, from, place, index));
            CHECK_EQUAL(varied[places[from] + counts[from]], -1);
        }
    memset(longer, 0, sizeof(int) * (size_t)own);
    EACH_FORM(Scatterv, scatterv, varied, counts, places, MPI_INT, longer, own, MPI_INT, root, comm);
    if (root >= 0)
        for (int index = 0; index < own; index++)
            CHECK_EQUAL(longer[index], value_of(giving, rank, place, index));
    free(counts);
    free(places);
    free(longer);
    free(varied);
    free(mine);
    free(all);
}

static void to_all(int count, int form)
{
    int theirs = 1 - side;
    int *mine = allocate(count * others), *all = allocate(count * others);
    fill(mine, count, 0);
    EACH_FORM(Allgather, allgather, mine, count, MPI_INT, all, count, MPI_INT, comm);
    for (int from = 0; from < others; from++)
        for (int index = 0; index < count; index++)
            CHECK_EQUAL(all[from * count + index], value_of(theirs, from, 0, index));

    EACH_FORM(Allreduce, allreduce, mine, all, count, MPI_INT, MPI_SUM, comm);
    for (int index = 0; index < count; index++)
        CHECK_EQUAL(all[index], (int)sum_of(theirs, others, 0, index));

    for (int to = 0; to < others; to++)
        fill(mine + to * count, count, to);
    EACH_FORM(Alltoall, alltoall, mine, count, MPI_INT, all, count, MPI_INT, comm);
    for (int from = 0; from < others; from++)
        for (int index = 0; index < count; index++)
            CHECK_EQUAL(all[from * count + index], value_of(theirs, from, rank, index));
    free(mine);
    free(all);

    /* Both sides together contribute as many elements, dealt out evenly on each side. */
    int dealt = count * others, total = dealt * size;
    mine = allocate(total);
    all = allocate(dealt);
    fill(mine, total, 0);
    EACH_FORM(Reduce_scatter_block, reduce_scatter_block, mine, all, dealt, MPI_INT, MPI_SUM, comm);
    for (int index = 0; index < dealt; index++)
        CHECK_EQUAL(all[index], (int)sum_of(theirs, others, 0, rank * dealt + index));
    int *counts = allocate(size), first = 0;
    for (int member = 0; member < size; member++)
        counts[member] = member == 0 ? total : 0;
    for (int member = 0; member + 1 < size; member++) {
        int moved = counts[member] / 2;
        counts[member] -= moved;
        counts[member + 1] += moved;
    }
    for (int member = 0; member < rank; member++)
        first += counts[member];
    int *got = allocate(counts[rank]);
    EACH_FORM(Reduce_scatter, reduce_scatter, mine, got, counts, MPI_INT, MPI_SUM, comm);
    for (int index = 0; index < counts[rank]; index++)
        CHECK_EQUAL(got[index], (int)sum_of(theirs, others, 0, first + index));
    free(got);
    free(counts);
    free(mine);
    free(all);

    int *sends = allocate(others), *receives = allocate(others), *send_places = allocate(others), *receive_places = allocate(others);
    MPI_Datatype *types = malloc(sizeof(MPI_Datatype) * (size_t)others);
    int send_total = 0, receive_total = 0;
    for (int peer = 0; peer < others; peer++) {
        sends[peer] = (rank + 2 * peer + side) % (count + 1);
        receives[peer] = (peer + 2 * rank + theirs) % (count + 1);
        send_places[peer] = send_total;
        receive_places[peer] = receive_total;
        send_total += sends[peer];
        receive_total += receives[peer];
        types[peer] = MPI_INT;
    }
    mine = allocate(send_total);
    all = allocate(receive_total);
    for (int peer = 0; peer < others; peer++)
        fill(mine + send_places[peer], sends[peer], peer);
    EACH_FORM(Alltoallv, alltoallv, mine, sends, send_places, MPI_INT, all, receives, receive_places, MPI_INT, comm);
    for (int peer = 0; peer < others; peer++)
        for (int index = 0; index < receives[peer]; index++)
            CHECK_EQUAL(all[receive_places[peer] + index], value_of(theirs, peer, rank, index));
    memset(all, 0, sizeof(int) * (size_t)receive_total);
    for (int peer = 0; peer < others; peer++) {
        send_places[peer] *= (int)sizeof(int);
        receive_places[peer] *= (int)sizeof(int);
    }
    EACH_FORM(Alltoallw, alltoallw, mine, sends, send_places, types, all, receives, receive_places, types, comm);
    for (int peer = 0; peer < others; peer++)
        for (int index = 0; index < receives[peer]; index++)
            CHECK_EQUAL(all[receive_places[peer] / (int)sizeof(int) + index], value_of(theirs, peer, rank, index));
    free(mine);
    free(all);

    /* Nobody knows what the others of its own side send. */
    int own = rank % 2 + count;
    receive_total = 0;
    for (int peer = 0; peer < others; peer++) {
        receives[peer] = peer % 2 + count;
        receive_places[peer] = receive_total;
        receive_total += receives[peer];
    }
    mine = allocate(own);
    all = allocate(receive_total);
    fill(mine, own, 0);
    EACH_FORM(Allgatherv, allgatherv, mine, own, MPI_INT, all, receives, receive_places, MPI_INT, comm);
    for (int peer = 0; peer < others; peer++)
        for (int index = 0; index < receives[peer]; index++)
            CHECK_EQUAL(all[receive_places[peer] + index], value_of(theirs, peer, 0, index));
    free(sends);
    free(receives);
    free(send_places);
    free(receive_places);
    free(types);
    free(mine);
    free(all);
    EACH_FORM(Barrier, barrier, comm);
}

static void between(int colour, int leaders[2])
{
    MPI_Comm half;
    side = colour;
    MPI_Comm_split(MPI_COMM_WORLD, colour, check_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, leaders[1 - colour], 7, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_remote_size(comm, &others);
    static const int counts[] = {0, 1, 5, 700};
    for (int form = 0; form < 3; form++)
        for (int which = 0; which < 4; which++) {
            for (int root_side = 0; root_side < 2; root_side++) {
                int members = root_side == side ? size : others;
                for (int place = 0; place < members; place++)
                    rooted(root_side, place, counts[which], form);
            }
            to_all(counts[which], form);
        }
    /* There are no scans between groups, and nothing in place. */
    int one = 1, two;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int code, class;
    code = MPI_Scan(&one, &two, 1, MPI_INT, MPI_SUM, comm);
    MPI_Error_class(code, &class);
    CHECK_EQUAL(class, MPI_ERR_COMM);
    code = MPI_Allreduce(MPI_IN_PLACE, &two, 1, MPI_INT, MPI_SUM, comm);
    MPI_Error_class(code, &class);
    CHECK_EQUAL(class, MPI_ERR_BUFFER);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (check_size > 1) {
        between(check_rank % 2, (int[]){0, 1});
        between(check_rank > 0, (int[]){0, 1});
    }
    return check_end("collectives_inter");
}
