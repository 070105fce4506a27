/* Message rate from rank 0 to rank 1: windows of 64 nonblocking sends of 8 bytes, each window acknowledged. */
#include "bench.h"

enum { window = 64 };

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    MPI_Request requests[window];
    uint64_t out[window] = {0}, in[window];
    int rounds = repetitions(10000);
    double parts[5];
    for (int part = 0; part < 5; part++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        for (int round = 0; round < rounds / 5 + 1; round++) {
            if (rank == 0) {
                for (int index = 0; index < window; index++)
                    MPI_Isend(&out[index], 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[index]);
                MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
                MPI_Recv(in, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else if (rank == 1) {
                for (int index = 0; index < window; index++)
                    MPI_Irecv(&in[index], 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[index]);
                MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
                MPI_Send(out, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            }
        }
        parts[part] = (double)window * (rounds / 5 + 1) / (now() - start);
    }
    result("message-rate", 8, median(parts, 5) / 1e6, "M/s");
    MPI_Finalize();
    return 0;
}
