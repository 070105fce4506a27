/* Queries that are allowed before MPI_Init and after MPI_Finalize, thread levels, MPI_COMM_SELF's attributes at finalize, clocks. */
#include "check.h"

static int deleted;

static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)extra;
    /* Deleted in reverse order of setting (MPI 5.0, 11.2.4). */
    if ((intptr_t)value == 3 - deleted)
        deleted++;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int flag, provided, version, subversion, length;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Initialized(&flag);
    CHECK_EQUAL(flag, 0);
    MPI_Finalized(&flag);
    CHECK_EQUAL(flag, 0);
    MPI_Get_version(&version, &subversion);
    CHECK_EQUAL(version, MPI_VERSION);
    CHECK_EQUAL(subversion, MPI_SUBVERSION);
    MPI_Get_library_version(text, &length);
    CHECK_EQUAL(length, strlen(text));
    MPI_Abi_get_version(&version, &subversion);
#ifdef MPICH
    // Compiled for MPICH's own ABI, which is not the standard's.
    CHECK_EQUAL(version, -1);
    CHECK_EQUAL(subversion, -1);
#else
    CHECK_EQUAL(version, 1);
    CHECK_EQUAL(subversion, 0);
#endif
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    CHECK(provided >= MPI_THREAD_SERIALIZED, "provided %d", provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    MPI_Initialized(&flag);
    CHECK_EQUAL(flag, 1);
    MPI_Is_thread_main(&flag);
    CHECK_EQUAL(flag, 1);
    int level;
    MPI_Query_thread(&level);
    CHECK_EQUAL(level, provided);
    double start = MPI_Wtime();
    sleep_ms(10);
    CHECK(MPI_Wtime() - start > 0.005 && MPI_Wtick() > 0 && MPI_Wtick() < 1e-3, "clock");
    for (intptr_t value = 1; value <= 3; value++) {
        int key;
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, (void *)value);
    }
    void *memory;
    MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &memory);
    memset(memory, 1, 1 << 20);
    MPI_Free_mem(memory);
    MPI_Finalize();
    if (deleted != 3) {
        fprintf(stderr, "rank %d: %d of 3 attributes were deleted in order\n", check_rank, deleted);
        return 1;
    }
    MPI_Finalized(&flag);
    if (!flag || check_rank < 0)
        return 1;
    if (check_rank == 0)
        puts("lifecycle: ok");
    return 0;
}
