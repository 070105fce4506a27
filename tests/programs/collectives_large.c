/* Collectives on more than 2 GiB: large counts, large displacements, and few elements of a large type. */
#include "check.h"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Count length = ((MPI_Count)1 << 31) + 17;
    size_t bytes = (size_t)length;
    unsigned char *data = malloc(bytes);
    CHECK(data != NULL, "no memory for %lld bytes", (long long)length);
    if (check_rank == 0)
        fill_bytes(data, bytes, 3);
    MPI_Bcast_c(data, length, MPI_BYTE, 0, MPI_COMM_WORLD);
    CHECK_EQUAL(wrong_byte(data, bytes, 3), -1);

    /* 2049 elements of one MiB. */
    MPI_Datatype mebibyte;
    MPI_Type_contiguous(1 << 20, MPI_BYTE, &mebibyte);
    MPI_Type_commit(&mebibyte);
    if (check_rank == check_size - 1)
        fill_bytes(data, bytes, 5);
    MPI_Request request;
    MPI_Ibcast(data, 2048, mebibyte, check_size - 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(wrong_byte(data, (size_t)1 << 31, 5), -1);
    MPI_Type_free(&mebibyte);

    /* Every rank's eight bytes lie at the end of its own part of the root's buffer, the last one beyond 2 GiB. */
    MPI_Count *counts = malloc(sizeof *counts * (size_t)check_size);
    MPI_Aint *places = malloc(sizeof *places * (size_t)check_size);
    for (int from = 0; from < check_size; from++) {
        counts[from] = 8;
        places[from] = (MPI_Aint)(length / check_size) * (from + 1) - 8;
    }
    uint64_t mine = check_mix((uint64_t)check_rank), got = 0;
    MPI_Gatherv_c(&mine, 8, MPI_BYTE, data, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int from = 0; check_rank == 0 && from < check_size; from++)
        CHECK(memcmp(data + places[from], &(uint64_t){check_mix((uint64_t)from)}, 8) == 0, "gathered from %d", from);
    MPI_Scatterv_c(data, counts, places, MPI_BYTE, &got, 8, MPI_BYTE, 0, MPI_COMM_WORLD);
    CHECK(got == mine, "scattered");
    free(counts);
    free(places);
    free(data);
    return check_end("collectives_large");
}
