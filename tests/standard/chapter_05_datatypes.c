/* MPI 5.0, chapter 5: every constructor with counts of both sizes, packing, external32, and addresses. */
#define NAME_OF(what) what##_with_int
#define Size MPI_Aint
#include "chapter_05_datatypes.inc"
#undef NAME_OF
#undef PICKS
#undef Size
#define LARGE
#define NAME_OF(what) what##_with_count
#define Size MPI_Count
#include "chapter_05_datatypes.inc"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    constructors_with_int();
    constructors_with_count();

    MPI_Aint here, there;
    SUCCEEDS(MPI_Get_address(&sent[0], &here));
    SUCCEEDS(MPI_Get_address(&sent[9], &there));
    CHECK_EQUAL(MPI_Aint_diff(there, here), 9 * sizeof(int));
    CHECK_EQUAL(MPI_Aint_add(here, 9 * sizeof(int)), there);
    MPI_Count lower = -1, extent = -1;
    SUCCEEDS(MPI_Type_get_extent_x(MPI_DOUBLE, &lower, &extent));
    CHECK(lower == 0 && extent == sizeof(double), "%lld, %lld", (long long)lower, (long long)extent);
    SUCCEEDS(MPI_Type_get_true_extent_x(MPI_DOUBLE, &lower, &extent));
    CHECK(lower == 0 && extent == sizeof(double), "%lld, %lld", (long long)lower, (long long)extent);
    MPI_Status status;
    memset(&status, 0, sizeof status);
    int elements = -1;
    SUCCEEDS(MPI_Status_set_elements_x(&status, MPI_INT, 5));
    SUCCEEDS(MPI_Get_elements(&status, MPI_INT, &elements));
    CHECK_EQUAL(elements, 5);
    return check_end("chapter_05_datatypes");
}
