/* Overlap by COMB's post-work-wait method: post, compute without calling MPI for about twice the transfer's time, wait. The result is the share of the
 * transfer's time that disappears behind the computation, from 0 (none) to 1 (all). Three cases: the receiver computes, its receive posted before the
 * message comes; the receiver computes, its receive posted when the message is already known to be there, while the sender waits in MPI_Send; the sender
 * computes while the receiver waits. Rank 0 receives.
 *
 * That share is of each library's own time: one that moves twice as fast has half as long to hide it in. What a program gets is how long both take together
 * where the work is the same for all, 0.2 ns for each byte, which is more than any library needs to move it.
 *
 * And as many programs go: both ranks begin to exchange messages, or to reduce, compute 1 ns for each byte, and wait; one such step after the other. */
#include "bench.h"

enum which { receiver, receiver_late, sender };

/* One exchange with `steps` of work between posting and waiting on the computing side. Seconds of that side. */
static double exchange(unsigned char *data, int bytes, enum which computing, long steps)
{
    MPI_Request request;
    double start;
    if (rank == 0) {
        if (computing == receiver_late) {
            MPI_Probe(1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            start = now();
            MPI_Irecv(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        } else {
            /* The sender has written its data: else the time of that would count as the transfer's. */
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Irecv(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            start = now();
        }
        if (computing != sender)
            bench_sink = work(3, steps);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        memset(data, 1, (size_t)bytes);
        if (computing != receiver_late) {
            MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        start = now();
        if (computing == sender) {
            MPI_Isend(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
            bench_sink = work(3, steps);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    return now() - start;
}

/* So many steps of a program in which both ranks communicate and compute at the same time. Seconds of one. */
static double step(unsigned char *data, unsigned char *other, int bytes, int reduces, long steps, int count)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    for (int time = 0; time < count; time++) {
        MPI_Request requests[2];
        if (reduces)
            MPI_Iallreduce(data, other, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, requests);
        else {
            MPI_Irecv(other, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(data, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
        }
        bench_sink = work(3, steps);
        MPI_Waitall(2 - reduces, requests, MPI_STATUSES_IGNORE);
    }
    return (now() - start) / count;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"overlap-receiver-computes", "overlap-receiver-computes-late", "overlap-sender-computes"};
    static const char *const times[] = {"together-receiver-computes", "together-receiver-computes-late", "together-sender-computes"};
    static const int sizes[] = {100000, 1000000, 16000000};
    enum { most = 101 };
    static double alone[most], both[most];
    bench_start(&argc, &argv);
    unsigned char *data = memory(16000000);
    MPI_Barrier(MPI_COMM_WORLD);
    double rate = work_rate();
    for (int computing = receiver; computing <= (int)sender; computing++)
        for (int which = 0; which < 3; which++) {
            int bytes = sizes[which], side = computing == sender;
            exchange(data, bytes, computing, 0);
            /* Both sides write or wait about as long as the transfer takes, and the work takes it twice. */
            int count = repetitions(exchange(data, bytes, computing, 0) * 4, 7, most);
            double hidden, together;
            do {
                for (int round = 0; round < count; round++)
                    alone[round] = exchange(data, bytes, computing, 0);
                double transfer = median(alone, count);
                long steps = (long)(2 * transfer * rate);
                for (int round = 0; round < count; round++)
                    both[round] = exchange(data, bytes, computing, steps);
                for (int round = 0; round < count; round++) {
                    double start = now();
                    bench_sink = work(3, steps);
                    alone[round] = now() - start;
                }
                hidden = 1 - (median(both, count) - median(alone, count)) / transfer;
                long same = (long)(bytes * 0.2e-9 * rate);
                for (int round = 0; round < count; round++)
                    both[round] = exchange(data, bytes, computing, same);
                together = median(both, count);
            } while (disturbed());
            MPI_Bcast(&together, 1, MPI_DOUBLE, side, MPI_COMM_WORLD);
            result(times[computing], bytes, together * 1e6, "us");
            MPI_Bcast(&hidden, 1, MPI_DOUBLE, side, MPI_COMM_WORLD);
            result(names[computing], bytes, hidden < 0 ? 0 : hidden > 1 ? 1 : hidden, "share");
        }
    unsigned char *other = memory(16000000);
    memset(data, 0, 16000000);
    for (int reduces = 0; reduces < 2; reduces++)
        for (int which = 0; which < 3; which++) {
            int bytes = sizes[which];
            long steps = (long)(bytes * 1e-9 * rate);
            int count = repetitions(step(data, other, bytes, reduces, steps, 2) * 5, 8, most);
            double together;
            do {
                for (int round = 0; round < 5; round++)
                    both[round] = step(data, other, bytes, reduces, steps, count);
                together = median(both, 5);
            } while (disturbed());
            result(reduces ? "step-iallreduce" : "step-exchange", bytes, together * 1e6, "us");
        }
    MPI_Finalize();
    return 0;
}
