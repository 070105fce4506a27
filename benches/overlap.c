/* Overlap by COMB's post-work-wait method: post, compute without calling MPI for about twice the transfer's time, wait. The result is the share of
 * the transfer's time that disappears behind the computation, from 0 (none) to 1 (all). Rank 0 receives; it computes, or rank 1 does. */
#include "bench.h"

/* One exchange; `steps` of work between posting and waiting, by the receiver (0) or by the sender (1). Seconds on rank 0. */
static double exchange(unsigned char *data, int bytes, int computing, long steps)
{
    MPI_Request request;
    double start, seconds;
    if (rank == 0) {
        MPI_Irecv(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        start = now();
        if (computing == 0)
            bench_sink = work(3, steps);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        seconds = now() - start;
    } else {
        memset(data, 1, (size_t)bytes);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        start = now();
        MPI_Isend(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        if (computing == 1)
            bench_sink = work(3, steps);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        seconds = now() - start;
    }
    return seconds;
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    static const int sizes[] = {100000, 1000000, 16000000};
    unsigned char *data = malloc(16000000);
    memset(data, 1, 16000000);
    MPI_Barrier(MPI_COMM_WORLD);
    double rate = work_rate();
    for (int which = 0; which < 3; which++)
        for (int computing = 0; computing < 2; computing++) {
            int bytes = sizes[which], count = repetitions(bytes > 1000000 ? 11 : 41);
            double *alone = malloc((size_t)count * sizeof *alone), *both = malloc((size_t)count * sizeof *both);
            for (int round = 0; round < count; round++)
                alone[round] = exchange(data, bytes, computing, 0);
            /* Each side measures its own transfer; both compute for the time that the computing side saw. */
            double transfer = median(alone, count);
            MPI_Bcast(&transfer, 1, MPI_DOUBLE, computing, MPI_COMM_WORLD);
            double duration = 2 * transfer;
            for (int round = 0; round < count; round++)
                both[round] = exchange(data, bytes, computing, (long)(duration * rate));
            double start = now();
            bench_sink = work(3, (long)(duration * rate));
            double working = now() - start, hidden = 1 - (median(both, count) - working) / transfer;
            MPI_Bcast(&hidden, 1, MPI_DOUBLE, computing, MPI_COMM_WORLD);
            result(computing == 0 ? "overlap-receiver-computes" : "overlap-sender-computes", bytes, hidden < 0 ? 0 : hidden > 1 ? 1 : hidden, "share");
            free(alone);
            free(both);
        }
    MPI_Finalize();
    return 0;
}
