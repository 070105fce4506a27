/* Matching: half round trip of 8 bytes with 10,000 other receives posted, with 10,000 unexpected messages queued, and with none; and 100,000 unexpected
 * messages queued and then received in reverse order of their tags. */
#include "bench.h"

enum { depth = 10000, flood_tag = 1000000 };

static double half_round_trip(int count)
{
    uint64_t data = 0;
    double start = now();
    for (int round = 0; round < count; round++) {
        if (rank == 0) {
            MPI_Send(&data, 8, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
            MPI_Recv(&data, 8, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(&data, 8, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&data, 8, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
        }
    }
    return (now() - start) / count / 2 * 1e6;
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    int count = repetitions(5000), many = repetitions(depth), other = 1 - rank;
    uint64_t *data = calloc(depth, sizeof *data), value = 0;
    MPI_Request *requests = malloc(depth * sizeof *requests);
    half_round_trip(count);
    result("match-depth-none", 8, half_round_trip(count), "us");

    for (int index = 0; index < many; index++)
        MPI_Irecv(&data[index], 8, MPI_BYTE, other, 100 + index, MPI_COMM_WORLD, &requests[index]);
    MPI_Barrier(MPI_COMM_WORLD);
    result("match-depth-posted", 8, half_round_trip(count), "us");
    for (int index = 0; index < many; index++)
        MPI_Send(&value, 8, MPI_BYTE, other, 100 + index, MPI_COMM_WORLD);
    MPI_Waitall(many, requests, MPI_STATUSES_IGNORE);

    for (int index = 0; index < many; index++)
        MPI_Isend(&data[index], 8, MPI_BYTE, other, 100 + index, MPI_COMM_WORLD, &requests[index]);
    MPI_Barrier(MPI_COMM_WORLD);
    result("match-depth-unexpected", 8, half_round_trip(count), "us");
    for (int index = 0; index < many; index++)
        MPI_Recv(&value, 8, MPI_BYTE, other, 100 + index, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(many, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);

    int floods = repetitions(20000);
    MPI_Request *sends = malloc((size_t)floods * sizeof *sends);
    if (rank == 0) {
        for (int index = 0; index < floods; index++)
            MPI_Isend(&value, 8, MPI_BYTE, 1, index, MPI_COMM_WORLD, &sends[index]);
        MPI_Send(NULL, 0, MPI_BYTE, 1, flood_tag, MPI_COMM_WORLD);
        MPI_Waitall(floods, sends, MPI_STATUSES_IGNORE);
        double drain;
        MPI_Recv(&drain, 1, MPI_DOUBLE, 1, flood_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        result("unexpected-drain-reversed", 8, drain * 1e9, "ns");
    } else if (rank == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, flood_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double start = now();
        for (int index = floods - 1; index >= 0; index--)
            MPI_Recv(&value, 8, MPI_BYTE, 0, index, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double drain = (now() - start) / floods;
        MPI_Send(&drain, 1, MPI_DOUBLE, 0, flood_tag, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
