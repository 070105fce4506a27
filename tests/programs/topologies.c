/* Virtual topologies: grids, their cuts and shifts; graphs, whole and distributed. */
#include "check.h"

static void grids(void)
{
    int dims[2] = {0, 0}, periods[2] = {1, 0}, found[2], wraps[2], place[2], count, status, size;
    MPI_Comm grid, twin, row, other;
    MPI_Dims_create(check_size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
    CHECK(grid != MPI_COMM_NULL, "the grid takes all processes");
    MPI_Topo_test(grid, &status);
    CHECK_EQUAL(status, MPI_CART);
    MPI_Topo_test(MPI_COMM_WORLD, &status);
    CHECK_EQUAL(status, MPI_UNDEFINED);
    MPI_Cartdim_get(grid, &count);
    CHECK_EQUAL(count, 2);
    MPI_Comm_dup(grid, &twin);
    MPI_Cart_get(twin, 2, found, wraps, place);
    CHECK(found[0] == dims[0] && found[1] == dims[1] && wraps[0] && !wraps[1], "a duplicate has the same grid");
    int rank, coords[2];
    for (int index = 0; index < check_size; index++) {
        MPI_Cart_coords(grid, index, 2, coords);
        CHECK(coords[0] == index / dims[1] && coords[1] == index % dims[1], "rank %d at %d, %d", index, coords[0], coords[1]);
        coords[0] -= 3 * dims[0];
        MPI_Cart_rank(grid, coords, &rank);
        CHECK_EQUAL(rank, index);
    }
    /* Everybody's value travels around the periodic dimension, and falls off the edge of the other. */
    MPI_Comm_rank(grid, &rank);
    for (int direction = 0; direction < 2; direction++) {
        int source, target, sent = rank, got = -1;
        MPI_Cart_shift(grid, direction, 1, &source, &target);
        MPI_Sendrecv(&sent, 1, MPI_INT, target, 0, &got, 1, MPI_INT, source, 0, grid, MPI_STATUS_IGNORE);
        if (direction == 0)
            CHECK_EQUAL(got, (rank - dims[1] + check_size) % check_size);
        else
            CHECK_EQUAL(got, place[1] > 0 ? rank - 1 : -1);
    }
    int keep[2] = {0, 1};
    MPI_Cart_sub(grid, keep, &row);
    MPI_Comm_size(row, &size);
    CHECK_EQUAL(size, dims[1]);
    MPI_Cart_get(row, 1, found, wraps, coords);
    CHECK(found[0] == dims[1] && !wraps[0] && coords[0] == place[1], "a row of the grid");
    keep[1] = 0;
    MPI_Cart_sub(grid, keep, &other);
    MPI_Comm_size(other, &size);
    MPI_Cartdim_get(other, &count);
    CHECK(size == 1 && count == 0, "a point of the grid");
    MPI_Comm_free(&other);
    MPI_Comm_free(&row);
    MPI_Comm_free(&twin);

    /* Processes beyond the grid get none. */
    int one = 1, no = 0, map;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &one, &no, 0, &other);
    CHECK((other != MPI_COMM_NULL) == (check_rank == 0), "a grid of one process");
    MPI_Cart_map(MPI_COMM_WORLD, 1, &one, &no, &map);
    CHECK_EQUAL(map, check_rank == 0 ? 0 : MPI_UNDEFINED);
    if (other != MPI_COMM_NULL)
        MPI_Comm_free(&other);
    /* In a grid without places there is none for anybody. */
    int nowhere[2] = {2, 0}, not_periodic[2] = {0, 0};
    MPI_Cart_map(MPI_COMM_WORLD, 2, nowhere, not_periodic, &map);
    CHECK_EQUAL(map, MPI_UNDEFINED);
    MPI_Cart_create(MPI_COMM_WORLD, 2, nowhere, not_periodic, 1, &other);
    CHECK(other == MPI_COMM_NULL, "a grid without processes");

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(grid, MPI_ERRORS_RETURN);
    int many = check_size + 1, negative = -1;
    CHECK_EQUAL(MPI_Cart_create(MPI_COMM_WORLD, 1, &many, &no, 0, &other), MPI_ERR_DIMS);
    CHECK_EQUAL(MPI_Cart_create(MPI_COMM_WORLD, 1, &negative, &no, 0, &other), MPI_ERR_DIMS);
    CHECK_EQUAL(MPI_Cart_coords(MPI_COMM_WORLD, 0, 2, coords), MPI_ERR_TOPOLOGY);
    CHECK_EQUAL(MPI_Cart_coords(grid, check_size, 2, coords), MPI_ERR_RANK);
    coords[0] = 0, coords[1] = dims[1];
    CHECK_EQUAL(MPI_Cart_rank(grid, coords, &rank), MPI_ERR_ARG);
    CHECK_EQUAL(MPI_Graphdims_get(grid, &count, &size), MPI_ERR_TOPOLOGY);
    MPI_Comm_free(&grid);
}

static void graphs(void)
{
    /* A ring with a chord from 0 to everybody. */
    int ends[64], edges[256], count = 0, nodes, total, found[256];
    MPI_Comm graph;
    for (int node = 0; node < check_size; node++) {
        edges[count++] = (node + 1) % check_size;
        edges[count++] = (node + check_size - 1) % check_size;
        for (int other = 0; node == 0 && other < check_size; other++)
            edges[count++] = other;
        ends[node] = count;
    }
    MPI_Graph_create(MPI_COMM_WORLD, check_size, ends, edges, 0, &graph);
    MPI_Graphdims_get(graph, &nodes, &total);
    CHECK(nodes == check_size && total == count, "%d nodes, %d edges", nodes, total);
    MPI_Graph_get(graph, nodes, total, found, found + 64);
    CHECK(memcmp(found, ends, nodes * sizeof(int)) == 0 && memcmp(found + 64, edges, count * sizeof(int)) == 0, "the graph as given");
    MPI_Graph_neighbors_count(graph, check_rank, &nodes);
    CHECK_EQUAL(nodes, check_rank == 0 ? 2 + check_size : 2);
    MPI_Graph_neighbors(graph, check_rank, nodes, found);
    CHECK_EQUAL(found[0], (check_rank + 1) % check_size);
    MPI_Comm_free(&graph);
}

static void distributed(void)
{
    /* Rank 0 names all edges of a ring, with weights. */
    int sources[64], degrees[64], targets[64], weights[64], from = -1, to = -1, from_weight, to_weight, in, out, weighted;
    MPI_Comm ring, twin, bare;
    /* Behind a variable: compilers warn of the constant, an address with nothing there. */
    int *volatile unweighted = MPI_UNWEIGHTED, *volatile empty = MPI_WEIGHTS_EMPTY;
    for (int node = 0; node < check_size; node++) {
        sources[node] = node;
        degrees[node] = 1;
        targets[node] = (node + 1) % check_size;
        weights[node] = 100 + node;
    }
    int own = check_rank == 0 ? check_size : 0;
    MPI_Dist_graph_create(MPI_COMM_WORLD, own, sources, degrees, targets, own ? weights : empty, MPI_INFO_NULL, 0, &ring);
    MPI_Comm_dup(ring, &twin);
    MPI_Dist_graph_neighbors_count(twin, &in, &out, &weighted);
    CHECK(in == 1 && out == 1 && weighted, "a ring: %d in, %d out", in, out);
    MPI_Dist_graph_neighbors(twin, 1, &from, &from_weight, 1, &to, &to_weight);
    int before = (check_rank + check_size - 1) % check_size;
    CHECK(from == before && from_weight == 100 + before, "from %d with %d", from, from_weight);
    CHECK(to == (check_rank + 1) % check_size && to_weight == 100 + check_rank, "to %d with %d", to, to_weight);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, unweighted, 0, NULL, unweighted, MPI_INFO_NULL, 0, &bare);
    MPI_Dist_graph_neighbors_count(bare, &in, &out, &weighted);
    CHECK(in == 1 && out == 0 && !weighted, "%d in, %d out", in, out);
    MPI_Dist_graph_neighbors(bare, 1, &to, unweighted, 0, NULL, unweighted);
    CHECK_EQUAL(to, before);
    MPI_Comm_free(&bare);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&ring);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    grids();
    graphs();
    distributed();
    return check_end("topologies");
}
