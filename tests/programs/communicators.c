/* Communicators: dup, idup, split, split_type, create, create_group, intercommunicators and merge, and that their traffic never mixes. */
#include "check.h"

static void ring_on(MPI_Comm comm, int tag)
{
    int rank, size, out, in = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    out = rank * 10 + tag;
    MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, tag, &in, 1, MPI_INT, (rank + size - 1) % size, tag, comm, MPI_STATUS_IGNORE);
    CHECK_EQUAL(in, (rank + size - 1) % size * 10 + tag);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm world = MPI_COMM_WORLD, copies[10], part;
    int result, size, rank;

    /* The same tag on ten communicators, received in another order than sent. */
    MPI_Request requests[10];
    int sent[10], got = -1;
    for (int index = 0; index < 10; index++) {
        if (index % 2)
            MPI_Comm_dup(world, &copies[index]);
        else {
            MPI_Request request;
            MPI_Comm_idup(world, &copies[index], &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Comm_compare(world, copies[index], &result);
        CHECK_EQUAL(result, MPI_CONGRUENT);
    }
    for (int index = 0; index < 10; index++) {
        sent[index] = index;
        MPI_Isend(&sent[index], 1, MPI_INT, (check_rank + 1) % check_size, 3, copies[index], &requests[index]);
    }
    for (int index = 9; index >= 0; index--) {
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copies[index], MPI_STATUS_IGNORE);
        CHECK_EQUAL(got, index);
    }
    MPI_Waitall(10, requests, MPI_STATUSES_IGNORE);
    for (int index = 0; index < 10; index++)
        MPI_Comm_free(&copies[index]);

    /* Thousands of communicators made and freed: ids are used again. */
    for (int index = 0; index < 3000; index++) {
        MPI_Comm_dup(MPI_COMM_SELF, &part);
        MPI_Comm_free(&part);
    }
    for (int index = 0; index < 300; index++) {
        MPI_Comm_dup(world, &part);
        ring_on(part, index);
        MPI_Comm_free(&part);
    }

    MPI_Comm_split(world, check_rank % 3 == 2 ? MPI_UNDEFINED : check_rank % 3, -check_rank, &part);
    if (check_rank % 3 == 2)
        CHECK(part == MPI_COMM_NULL, "MPI_UNDEFINED gives no communicator");
    else {
        ring_on(part, 1);
        MPI_Comm_free(&part);
    }
    MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
    MPI_Comm_size(part, &size);
    CHECK_EQUAL(size, check_size);
    ring_on(part, 2);
    MPI_Comm_free(&part);

    MPI_Group everybody, evens;
    MPI_Comm_group(world, &everybody);
    int range[1][3] = {{0, check_size - 1, 2}};
    MPI_Group_range_incl(everybody, 1, range, &evens);
    MPI_Comm_create(world, evens, &part);
    if (check_rank % 2 == 0) {
        MPI_Comm_rank(part, &rank);
        CHECK_EQUAL(rank, check_rank / 2);
        ring_on(part, 3);
        MPI_Comm_free(&part);
        MPI_Comm_create_group(world, evens, 17, &part);
        ring_on(part, 4);
        MPI_Comm_free(&part);
    } else {
        CHECK(part == MPI_COMM_NULL, "outside the group");
        /* Not a member: nothing comes of it, and nobody is waited for. */
        part = MPI_COMM_WORLD;
        MPI_Comm_create_group(world, evens, 18, &part);
        CHECK(part == MPI_COMM_NULL, "outside the group that its members alone make");
    }
    MPI_Group_free(&evens);
    MPI_Group_free(&everybody);

    if (check_size >= 2) {
        MPI_Comm side, between, merged;
        int colour = check_rank % 2, remote;
        MPI_Comm_split(world, colour, 0, &side);
        MPI_Intercomm_create(side, 0, world, 1 - colour, 5, &between);
        MPI_Comm_test_inter(between, &result);
        CHECK(result, "an intercommunicator");
        MPI_Comm_remote_size(between, &remote);
        CHECK_EQUAL(remote, colour == 0 ? check_size / 2 : (check_size + 1) / 2);
        MPI_Comm_rank(side, &rank);
        long mine = check_rank, sum = -1, expected = 0;
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, between);
        for (int other = 1 - colour; other < check_size; other += 2)
            expected += other;
        CHECK_EQUAL(sum, expected);
        int word = -1, root = colour == 0 ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
        if (root == MPI_ROOT)
            word = 4711;
        MPI_Bcast(&word, 1, MPI_INT, root, between);
        if (colour == 1)
            CHECK_EQUAL(word, 4711);
        MPI_Barrier(between);
        MPI_Intercomm_merge(between, colour, &merged);
        MPI_Comm_size(merged, &size);
        CHECK_EQUAL(size, check_size);
        MPI_Comm_rank(merged, &rank);
        CHECK_EQUAL(rank, check_rank / 2 + (colour ? (check_size + 1) / 2 : 0));
        ring_on(merged, 6);
        MPI_Comm_free(&merged);
        MPI_Comm_free(&between);
        MPI_Comm_free(&side);
    }
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Comm_get_name(world, name, &length);
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0, "the name is '%s'", name);
    return check_end("communicators");
}
