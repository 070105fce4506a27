/* `count` messages (argument 1) of `bytes` (argument 2) arrive before any receive, and are then received in reverse order of their
 * tags. The receiver's memory stays below `limit` MiB (argument 3) above what it was. */
#include "check.h"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    CHECK(argc > 3 && check_size == 2, "usage: unexpected_flood COUNT BYTES LIMIT_MIB on 2 ranks");
    int count = atoi(argv[1]), bytes = atoi(argv[2]);
    double limit = atof(argv[3]);
    unsigned char *data = malloc((size_t)bytes + 1);
    if (check_rank == 0) {
        MPI_Request *requests = malloc((size_t)count * sizeof *requests);
        /* Nonblocking, so that the program is correct whatever the library can store. */
        unsigned char *all = malloc((size_t)count * (size_t)bytes + 1);
        for (int tag = 0; tag < count; tag++) {
            fill_bytes(all + (size_t)tag * (size_t)bytes, (size_t)bytes, (uint64_t)tag);
            MPI_Isend(all + (size_t)tag * (size_t)bytes, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[tag]);
        }
        MPI_Send(NULL, 0, MPI_BYTE, 1, count, MPI_COMM_WORLD);
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        free(all);
        free(requests);
    } else {
        double before = resident_mib(0);
        /* All that came before this message has been taken in, or waits at the sender. */
        MPI_Recv(NULL, 0, MPI_BYTE, 0, count, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int tag = count - 1; tag >= 0; tag--) {
            MPI_Status status;
            int got;
            MPI_Recv(data, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &got);
            CHECK_EQUAL(got, bytes);
            CHECK_EQUAL(wrong_byte(data, (size_t)bytes, (uint64_t)tag), -1);
        }
        double grown = resident_mib(1) - before;
        printf("receiver grew by %.1f MiB\n", grown);
        CHECK(grown < limit, "the receiver grew by %.1f MiB, more than %.1f", grown, limit);
    }
    free(data);
    return check_end("unexpected_flood");
}
