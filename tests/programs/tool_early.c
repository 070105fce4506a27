/* A control variable that is read before MPI_Init has the value that mpiexec was given for it. */
#include "check.h"

int main(int argc, char **argv)
{
    int provided, index, count;
    unsigned long long before = 0, after = 0;
    MPI_T_cvar_handle handle;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    CHECK_EQUAL(MPI_T_cvar_get_index("direct_threshold", &index), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_cvar_read(handle, &before), MPI_SUCCESS);
    check_start(&argc, &argv);
    CHECK_EQUAL(MPI_T_cvar_read(handle, &after), MPI_SUCCESS);
    CHECK_EQUAL(before, 12345ull);
    CHECK_EQUAL(after, 12345ull);
    MPI_T_cvar_handle_free(&handle);
    MPI_T_finalize();
    return check_end("tool_early");
}
