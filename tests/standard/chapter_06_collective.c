/* MPI 5.0, chapter 6: every collective, blocking, nonblocking and persistent, with counts of both sizes. */
#define NAME with_int
#include "chapter_06_collective.inc"
#undef NAME
#undef ALL_FORMS
#define LARGE
#define NAME with_count
#include "chapter_06_collective.inc"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    with_int();
    with_count();

    MPI_Request request;
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    SUCCEEDS(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    finish(&request);
    SUCCEEDS(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    for (int time = 0; time < 2; time++) {
        SUCCEEDS(MPI_Start(&request));
        finish(&request);
    }
    SUCCEEDS(MPI_Request_free(&request));
    return check_end("chapter_06_collective");
}
