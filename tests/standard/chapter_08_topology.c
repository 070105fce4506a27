/* MPI 5.0, chapter 8: neighbourhood collectives in all forms with counts of both sizes, and mappings of graphs. */
#define NAME with_int
#include "chapter_08_neighbors.inc"
#undef NAME
#undef ALL_FORMS
#define LARGE
#define NAME with_count
#include "chapter_08_neighbors.inc"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int sources[2] = {(check_rank + check_size - 1) % check_size, check_rank};
    int targets[2] = {(check_rank + 1) % check_size, check_rank};
    int weights[2] = {1, 1};
    MPI_Comm ring;
    SUCCEEDS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, weights, 2, targets, weights, MPI_INFO_NULL, 0, &ring));
    with_int(ring);
    with_count(ring);
    SUCCEEDS(MPI_Comm_free(&ring));

    /* A mapping gives every process of the graph a rank of its own, and MPI_UNDEFINED to the others. */
    int ends[1] = {1}, edges[1] = {0}, mapped = -2, members;
    SUCCEEDS(MPI_Graph_map(MPI_COMM_WORLD, 1, ends, edges, &mapped));
    CHECK(mapped == 0 || mapped == MPI_UNDEFINED, "mapped to %d", mapped);
    int is_member = mapped == 0;
    SUCCEEDS(MPI_Allreduce(&is_member, &members, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQUAL(members, 1);
    return check_end("chapter_08_topology");
}
