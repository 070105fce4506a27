/* Touches many corners of the ABI with one small program, to be built with one library's header and run on another's. */
#include "check.h"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size, length, got[4], sent[4] = {check_rank, 1, 2, 3};
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Get_library_version(library, &length);
    MPI_Status status;
    MPI_Sendrecv(sent, 4, MPI_INT, right, 12, got, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    CHECK_EQUAL(status.MPI_SOURCE, left);
    CHECK_EQUAL(status.MPI_TAG, 12);
    CHECK_EQUAL(got[0], left);
    double value = check_rank, sum;
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == check_size * (check_size - 1) / 2.0, "sum %f", sum);
    MPI_Datatype type;
    MPI_Type_vector(2, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv(sent, 1, type, right, 0, got, 2, MPI_INT, left, 0, MPI_COMM_WORLD, &status);
    CHECK_EQUAL(got[1], 2);
    MPI_Type_free(&type);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &half);
    MPI_Comm_free(&half);
    if (check_rank == 0)
        printf("library: %.60s\n", library);
    return check_end("foreign");
}
