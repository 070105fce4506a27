/* MPI_Comm_split_type on several hosts: resources of two hosts are never taken for one, although every host counts its own from 0. */
#include "check.h"

static MPI_Comm by_resource(const char *resource)
{
    MPI_Info info;
    MPI_Comm made;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", resource);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &made);
    MPI_Info_free(&info);
    return made;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm node, part;
    int result, size;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    CHECK(size < check_size, "there are several hosts");

    const char *resources[] = {"mpi_shared_memory", "hwloc://Machine"};
    for (int which = 0; which < 2; which++) {
        part = by_resource(resources[which]);
        CHECK(part != MPI_COMM_NULL, "by %s", resources[which]);
        MPI_Comm_compare(node, part, &result);
        CHECK_EQUAL(result, MPI_CONGRUENT);
        MPI_Comm_free(&part);
    }
    /* The largest resource that tells processes apart is the host. */
    MPI_Info info;
    char value[64] = "";
    int flag;
    MPI_Info_create(&info);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &part);
    CHECK(part != MPI_COMM_NULL, "unguided");
    MPI_Comm_compare(node, part, &result);
    CHECK_EQUAL(result, MPI_CONGRUENT);
    MPI_Info_get(info, "mpi_hw_resource_type", sizeof value - 1, value, &flag);
    CHECK(flag && strcmp(value, "hwloc://Machine") == 0, "split by '%s'", value);
    MPI_Info_free(&info);
    MPI_Comm_free(&part);
    MPI_Comm_free(&node);
    return check_end("split_hosts");
}
