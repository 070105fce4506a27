/* Collective operations on neighbours: grids with borders and with dimensions of 1 and 2 processes, graphs, and distributed
   graphs with repeated edges and edges of a process to itself; every form against the rules of MPI 5.0, section 8.6. */
#include "check.h"

enum { MOST = 64, LONGEST = 7 };

/* What a process knows of its neighbours; where block l of the receive buffer comes from: which rank, which block there. */
struct around {
    MPI_Comm comm;
    int rank, sources, targets;
    int source[MOST], source_block[MOST], target[MOST];
};

enum form { BLOCKING, NONBLOCKING, PERSISTENT, BLOCKING_LARGE, NONBLOCKING_LARGE, PERSISTENT_LARGE, FORMS };

#define RUN(form, name, request, arguments, large_arguments)                                        \
    do {                                                                                            \
        MPI_Request request;                                                                        \
        switch (form) {                                                                             \
        case BLOCKING: SUCCEEDS(MPI_Neighbor_##name arguments); break;                              \
        case BLOCKING_LARGE: SUCCEEDS(MPI_Neighbor_##name##_c large_arguments); break;              \
        case NONBLOCKING: SUCCEEDS(MPI_Ineighbor_##name WITH(arguments, &request)); break;          \
        case NONBLOCKING_LARGE: SUCCEEDS(MPI_Ineighbor_##name##_c WITH(large_arguments, &request)); break; \
        case PERSISTENT: SUCCEEDS(MPI_Neighbor_##name##_init WITH(arguments, MPI_INFO_NULL, &request)); break; \
        default: SUCCEEDS(MPI_Neighbor_##name##_init_c WITH(large_arguments, MPI_INFO_NULL, &request)); break; \
        }                                                                                           \
        int persistent = form == PERSISTENT || form == PERSISTENT_LARGE;                            \
        for (int turn = 0; turn < (persistent ? 3 : (int)form % 3); turn++) {                            \
            if (persistent)                                                                         \
                SUCCEEDS(MPI_Start(&request));                                                      \
            SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));                                        \
        }                                                                                           \
        if (persistent)                                                                             \
            SUCCEEDS(MPI_Request_free(&request));                                                   \
    } while (0)
#define UNPACK(...) __VA_ARGS__
#define WITH(arguments, ...) (UNPACK arguments, __VA_ARGS__)

/* How many numbers go from one process to another in a block, and which. */
static int length_of(int from, int block) { return (from * 5 + block * 3) % LONGEST; }
static int number(int from, int block, int index) { return 100000 * from + 100 * block + index; }

static void allgathers(const struct around *around, enum form form)
{
    int send[LONGEST], recv[MOST * LONGEST], counts[MOST], places[MOST];
    MPI_Count large_counts[MOST];
    MPI_Aint large_places[MOST];
    for (int index = 0; index < LONGEST; index++)
        send[index] = number(around->rank, 0, index);
    memset(recv, 0xff, sizeof recv);
    RUN(form, allgather, request, (send, 3, MPI_INT, recv, 3, MPI_INT, around->comm), (send, 3, MPI_INT, recv, 3, MPI_INT, around->comm));
    for (int block = 0; block < around->sources; block++)
        for (int index = 0; index < 3; index++)
            CHECK_EQUAL(recv[3 * block + index], around->source[block] < 0 ? -1 : number(around->source[block], 0, index));
    CHECK_EQUAL(recv[3 * around->sources], -1);

    memset(recv, 0xff, sizeof recv);
    for (int block = 0; block < around->sources; block++) {
        large_counts[block] = counts[block] = around->source[block] < 0 ? 2 : length_of(around->source[block], 0);
        large_places[block] = places[block] = LONGEST * (around->sources - 1 - block);
    }
    int own = length_of(around->rank, 0);
    RUN(form, allgatherv, request, (send, own, MPI_INT, recv, counts, places, MPI_INT, around->comm),
        (send, own, MPI_INT, recv, large_counts, large_places, MPI_INT, around->comm));
    for (int block = 0; block < around->sources; block++)
        for (int index = 0; index < LONGEST; index++)
            CHECK_EQUAL(recv[places[block] + index],
                        around->source[block] < 0 || index >= counts[block] ? -1 : number(around->source[block], 0, index));
}

static void check_blocks(const struct around *around, const int *recv, const int *counts, const int *places)
{
    for (int block = 0; block < around->sources; block++)
        for (int index = 0; index < LONGEST; index++) {
            int from = around->source[block];
            int expected = from < 0 || index >= counts[block] ? -1 : number(from, around->source_block[block], index);
            CHECK(recv[places[block] + index] == expected, "block %d, number %d: %d, expected %d", block, index,
                  recv[places[block] + index], expected);
        }
}

static void alltoalls(const struct around *around, enum form form)
{
    int send[MOST * LONGEST], recv[MOST * LONGEST], counts[2][MOST], places[2][MOST];
    MPI_Count large_counts[2][MOST];
    MPI_Aint large_places[2][MOST], bytes[2][MOST];
    MPI_Datatype types[2][MOST], pair;
    for (int block = 0; block < around->targets; block++)
        for (int index = 0; index < LONGEST; index++)
            send[LONGEST * block + index] = number(around->rank, block, index);
    memset(recv, 0xff, sizeof recv);
    for (int block = 0; block < around->sources; block++) {
        counts[1][block] = LONGEST;
        places[1][block] = LONGEST * block;
    }
    RUN(form, alltoall, request, (send, LONGEST, MPI_INT, recv, LONGEST, MPI_INT, around->comm),
        (send, LONGEST, MPI_INT, recv, LONGEST, MPI_INT, around->comm));
    check_blocks(around, recv, counts[1], places[1]);

    for (int block = 0; block < around->targets; block++) {
        large_counts[0][block] = counts[0][block] = length_of(around->rank, block);
        large_places[0][block] = places[0][block] = LONGEST * block;
    }
    for (int block = 0; block < around->sources; block++) {
        large_counts[1][block] = counts[1][block] =
            around->source[block] < 0 ? 1 : length_of(around->source[block], around->source_block[block]);
        large_places[1][block] = places[1][block] = LONGEST * (around->sources - 1 - block);
    }
    memset(recv, 0xff, sizeof recv);
    RUN(form, alltoallv, request, (send, counts[0], places[0], MPI_INT, recv, counts[1], places[1], MPI_INT, around->comm),
        (send, large_counts[0], large_places[0], MPI_INT, recv, large_counts[1], large_places[1], MPI_INT, around->comm));
    check_blocks(around, recv, counts[1], places[1]);

    /* Even lengths leave as pairs. */
    SUCCEEDS(MPI_Type_contiguous(2, MPI_INT, &pair));
    SUCCEEDS(MPI_Type_commit(&pair));
    int halves[MOST];
    MPI_Count large_halves[MOST];
    for (int block = 0; block < around->targets; block++) {
        int even = counts[0][block] % 2 == 0;
        large_halves[block] = halves[block] = even ? counts[0][block] / 2 : counts[0][block];
        types[0][block] = even ? pair : MPI_INT;
        bytes[0][block] = (MPI_Aint)sizeof(int) * places[0][block];
    }
    for (int block = 0; block < around->sources; block++) {
        types[1][block] = MPI_INT;
        bytes[1][block] = (MPI_Aint)sizeof(int) * places[1][block];
    }
    memset(recv, 0xff, sizeof recv);
    RUN(form, alltoallw, request, (send, halves, bytes[0], types[0], recv, counts[1], bytes[1], types[1], around->comm),
        (send, large_halves, bytes[0], types[0], recv, large_counts[1], bytes[1], types[1], around->comm));
    check_blocks(around, recv, counts[1], places[1]);
    SUCCEEDS(MPI_Type_free(&pair));
}

static void check_around(const struct around *around)
{
    for (enum form form = BLOCKING; form < FORMS; form++) {
        allgathers(around, form);
        alltoalls(around, form);
    }
    /* Several under way at once, with long blocks. */
    enum { LONG = 30000, DEEP = 3 };
    MPI_Request requests[DEEP];
    int *buffers[DEEP][2];
    for (int turn = 0; turn < DEEP; turn++) {
        buffers[turn][0] = malloc(sizeof(int) * LONG * (size_t)(around->targets + 1));
        buffers[turn][1] = malloc(sizeof(int) * LONG * (size_t)(around->sources + 1));
        for (int place = 0; place < LONG * around->targets; place++)
            buffers[turn][0][place] = turn + number(around->rank, place / LONG, 0);
        SUCCEEDS(MPI_Ineighbor_alltoall(buffers[turn][0], LONG, MPI_INT, buffers[turn][1], LONG, MPI_INT, around->comm, &requests[turn]));
    }
    SUCCEEDS(MPI_Waitall(DEEP, requests, MPI_STATUSES_IGNORE));
    for (int turn = 0; turn < DEEP; turn++) {
        for (int block = 0; block < around->sources; block++)
            for (int index = 0; index < LONG && around->source[block] >= 0; index += LONG - 1)
                CHECK_EQUAL(buffers[turn][1][LONG * block + index], turn + number(around->source[block], around->source_block[block], 0));
        free(buffers[turn][0]);
        free(buffers[turn][1]);
    }
}

static void grid(int dimensions, const int *dims, const int *periods)
{
    struct around around = {0};
    SUCCEEDS(MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 0, &around.comm));
    if (around.comm == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(around.comm, &around.rank);
    around.sources = around.targets = 2 * dimensions;
    for (int direction = 0; direction < dimensions; direction++) {
        int *pair = &around.source[2 * direction];
        MPI_Cart_shift(around.comm, direction, 1, &pair[0], &pair[1]);
        for (int side = 0; side < 2; side++) {
            if (pair[side] == MPI_PROC_NULL)
                pair[side] = -1;
            around.source_block[2 * direction + side] = 2 * direction + 1 - side;
        }
    }
    check_around(&around);
    SUCCEEDS(MPI_Comm_free(&around.comm));
}

static void grids(void)
{
    for (int periodic = 0; periodic < 2; periodic++) {
        int periods[3] = {periodic, periodic, periodic}, one[3] = {1, 1, 1}, all[1] = {check_size}, thin[3] = {1, check_size, 1};
        grid(1, all, periods);
        grid(3, one, periods);
        grid(3, thin, periods);
        int balanced[3] = {0, 0, 0};
        MPI_Dims_create(check_size, 3, balanced);
        grid(3, balanced, periods);
        if (check_size >= 2) {
            int two[1] = {2}, twice[2] = {2, check_size / 2};
            grid(1, two, periods);
            grid(2, twice, periods);
        }
    }
    int mixed[2] = {check_size, 1}, periods[2] = {0, 1};
    grid(2, mixed, periods);
    grid(0, mixed, periods);
}

/* Each edge of a list that every process makes alike: from whom, to whom. */
static int edges_of(uint64_t seed, int edges[][2], int most)
{
    int count = (int)(check_mix(seed) % (uint64_t)(most + 1));
    for (int edge = 0; edge < count; edge++) {
        edges[edge][0] = (int)(check_mix(seed + 2 * (uint64_t)edge + 1) % (uint64_t)check_size);
        edges[edge][1] = (int)(check_mix(seed + 2 * (uint64_t)edge + 2) % (uint64_t)check_size);
    }
    return count;
}

static void distributed(uint64_t seed, int adjacent)
{
    int edges[MOST][2], blocks[64] = {0};
    int count = edges_of(seed, edges, check_size == 1 ? 5 : 3 * check_size < MOST ? 3 * check_size : MOST - 1);
    struct around around = {0};
    /* GCC takes a constant address for an array of no elements. */
    int *volatile unweighted = MPI_UNWEIGHTED;
    around.rank = check_rank;
    for (int edge = 0; edge < count; edge++) {
        int block = blocks[edges[edge][0]]++;
        if (edges[edge][0] == check_rank)
            around.target[around.targets++] = edges[edge][1];
        if (edges[edge][1] == check_rank) {
            around.source[around.sources] = edges[edge][0];
            around.source_block[around.sources++] = block;
        }
    }
    if (adjacent) {
        SUCCEEDS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, around.sources, around.source, unweighted, around.targets,
                                                around.target, unweighted, MPI_INFO_NULL, 0, &around.comm));
    } else {
        int sources[MOST], degrees[MOST], targets[MOST];
        for (int edge = 0; edge < count; edge++) {
            sources[edge] = edges[edge][0];
            degrees[edge] = 1;
            targets[edge] = edges[edge][1];
        }
        SUCCEEDS(MPI_Dist_graph_create(MPI_COMM_WORLD, check_rank == 0 ? count : 0, sources, degrees, targets, unweighted,
                                       MPI_INFO_NULL, 0, &around.comm));
        /* The order among the edges of a process is the library's. */
        SUCCEEDS(MPI_Dist_graph_neighbors(around.comm, MOST, around.source, unweighted, MOST, around.target, unweighted));
        int all[64 * MOST];
        around.target[around.targets] = -1;
        SUCCEEDS(MPI_Allgather(around.target, MOST, MPI_INT, all, MOST, MPI_INT, MPI_COMM_WORLD));
        for (int block = 0; block < around.sources; block++) {
            int before = 0, place = -1;
            for (int other = 0; other < block; other++)
                before += around.source[other] == around.source[block];
            for (int seen = -1; seen < before;)
                seen += all[MOST * around.source[block] + ++place] == check_rank;
            around.source_block[block] = place;
        }
    }
    check_around(&around);
    SUCCEEDS(MPI_Comm_free(&around.comm));
}

/* A ring in both directions in which every edge stands twice, and every process knows itself. */
static void graph(void)
{
    int ends[64], edges[5 * 64];
    struct around around = {0};
    around.rank = check_rank;
    for (int rank = 0; rank < check_size; rank++) {
        int after = (rank + 1) % check_size, before = (rank + check_size - 1) % check_size;
        int mine[5] = {after, rank, before, before, after};
        memcpy(&edges[5 * rank], mine, sizeof mine);
        ends[rank] = 5 * (rank + 1);
    }
    SUCCEEDS(MPI_Graph_create(MPI_COMM_WORLD, check_size, ends, edges, 0, &around.comm));
    around.sources = around.targets = 5;
    for (int block = 0; block < 5; block++) {
        around.source[block] = edges[5 * check_rank + block];
        int nth = 0, place = -1;
        for (int other = 0; other < block; other++)
            nth += edges[5 * check_rank + other] == around.source[block];
        for (int seen = -1; seen < nth;)
            seen += edges[5 * around.source[block] + ++place] == check_rank;
        around.source_block[block] = place;
    }
    check_around(&around);
    MPI_Comm twin;
    SUCCEEDS(MPI_Comm_dup(around.comm, &twin));
    SUCCEEDS(MPI_Comm_free(&around.comm));
    around.comm = twin;
    check_around(&around);
    SUCCEEDS(MPI_Comm_free(&around.comm));
}

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

static void errors(void)
{
    int in[4] = {0}, out[400], counts[2] = {1, -1}, places[2] = {0}, all[1] = {check_size}, periods[1] = {1};
    MPI_Aint bytes[2] = {0};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Request request;
    MPI_Comm world = MPI_COMM_WORLD, comm;
    expect(MPI_Neighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, world), MPI_ERR_TOPOLOGY, "topology", "no topology");
    expect(MPI_Neighbor_allgatherv(in, 1, MPI_INT, out, counts, places, MPI_INT, world), MPI_ERR_TOPOLOGY, "topology", "no topology");
    expect(MPI_Neighbor_alltoall(in, 1, MPI_INT, out, 1, MPI_INT, world), MPI_ERR_TOPOLOGY, "MPI_Cart_create", "no topology");
    expect(MPI_Ineighbor_alltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, world, &request), MPI_ERR_TOPOLOGY, "topology", "no topology");
    expect(MPI_Neighbor_alltoallw(in, counts, bytes, types, out, counts, bytes, types, world), MPI_ERR_TOPOLOGY, "topology", "no topology");
    SUCCEEDS(MPI_Cart_create(world, 1, all, periods, 0, &comm));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    expect(MPI_Neighbor_allgather(in, -1, MPI_INT, out, 1, MPI_INT, comm), MPI_ERR_COUNT, "sendcount", "a negative count");
    expect(MPI_Neighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, comm), MPI_ERR_BUFFER, "MPI_IN_PLACE", "in place");
    expect(MPI_Neighbor_alltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, comm), MPI_ERR_COUNT, "recvcounts[1]", "a negative count");
    expect(MPI_Neighbor_alltoall(in, 1, MPI_DATATYPE_NULL, out, 1, MPI_INT, comm), MPI_ERR_TYPE, "sendtype", "no datatype");
    int sum = 7, got[2] = {0};
    SUCCEEDS(MPI_Neighbor_allgather(&sum, 1, MPI_INT, got, 1, MPI_INT, comm));
    CHECK(got[0] == 7 && got[1] == 7, "the communicator works afterwards");
    SUCCEEDS(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    grids();
    graph();
    for (uint64_t seed = 1; seed <= 8; seed++) {
        distributed(1000 * seed, 1);
        distributed(1000 * seed + 500, 0);
    }
    errors();
    return check_end("neighbors");
}
