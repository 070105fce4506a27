/* One message of `bytes` (argument 1) from rank 0 to rank 1, by the int form, or by the large-count form when it is longer than 2 GiB. */
#include "check.h"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    CHECK(check_size >= 2 && argc > 1, "usage: big_message BYTES on 2 ranks");
    MPI_Count bytes = atoll(argv[1]);
    if (check_rank < 2) {
        unsigned char *data = malloc((size_t)bytes);
        CHECK(data != NULL, "no memory for %lld bytes", (long long)bytes);
        if (check_rank == 0) {
            fill_bytes(data, (size_t)bytes, 11);
            if (bytes > 0x7fffffff)
                MPI_Send_c(data, bytes, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
            else
                MPI_Send(data, (int)bytes, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
        } else {
            MPI_Status status;
            MPI_Count got;
            if (bytes > 0x7fffffff)
                MPI_Recv_c(data, bytes, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &status);
            else
                MPI_Recv(data, (int)bytes, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &status);
            MPI_Get_count_c(&status, MPI_BYTE, &got);
            CHECK_EQUAL(got, bytes);
            CHECK_EQUAL(wrong_byte(data, (size_t)bytes, 11), -1);
            if (bytes > 0x7fffffff) {
                int small;
                MPI_Get_count(&status, MPI_BYTE, &small);
                CHECK_EQUAL(small, MPI_UNDEFINED);
            }
        }
        free(data);
    }
    return check_end("big_message");
}
