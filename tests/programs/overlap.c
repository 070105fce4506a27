/* The receiver posts a receive and computes without calling MPI; the data arrives all the same, because the sender waits for it.
 * Nothing is timed: the receiver looks at its buffer until the last byte is there, and gives up after argument 1 seconds. */
#include "check.h"

static int all_there(volatile unsigned char *data, size_t length)
{
    return data[0] == 1 && data[length / 2] == 1 && data[length - 1] == 1;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int patience = argc > 1 ? atoi(argv[1]) : 20;
    static const size_t sizes[] = {100, 5000, 100000, 1000000, 16000000};
    for (int size = 0; size < 5; size++) {
        size_t length = sizes[size];
        unsigned char *data = malloc(length);
        MPI_Request request;
        if (check_rank == 0) {
            memset(data, 0, length);
            MPI_Irecv(data, (int)length, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            /* From here to the loop's end, no call of MPI. */
            time_t start = time(NULL);
            uint64_t work = 1;
            while (!all_there(data, length) && time(NULL) - start < patience)
                for (int step = 0; step < 100000; step++)
                    work = check_mix(work);
            CHECK(all_there(data, length) && work, "%zu bytes did not arrive in %d s while the receiver computed", length, patience);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (check_rank == 1) {
            memset(data, 1, length);
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Ssend(data, (int)length, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        }
        free(data);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return check_end("overlap");
}
