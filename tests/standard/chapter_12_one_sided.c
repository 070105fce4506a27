/* MPI 5.0, chapter 12: every access to windows of each kind, with and without requests, with counts of both sizes. */
#define NAME with_int
#define ACCESSES accesses_with_int
#define Unit int
#include "chapter_12_one_sided.inc"
#undef NAME
#undef ACCESSES
#undef Unit
#define LARGE
#define NAME with_count
#define ACCESSES accesses_with_count
#define Unit MPI_Aint
#include "chapter_12_one_sided.inc"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    with_int();
    with_count();
    return check_end("chapter_12_one_sided");
}
