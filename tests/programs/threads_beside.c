/* One thread of each rank exchanges messages as fast as it can, and takes in what comes for another one, which waits for one message a
 * round: in a receive, a probe, or for a request. Then the first one calls nothing until that has come: who has taken it in must have told. */
#include "check.h"

#include <pthread.h>

enum { rounds = 3000, exchanges = 24, there = 1, aside = 2 };

static pthread_barrier_t together;

static void receive_one(int round)
{
    long found = -1;
    MPI_Request request;
    MPI_Message message;
    int other = 1 - check_rank;
    switch (round % 4) {
    case 0:
        MPI_Recv(&found, 1, MPI_LONG, other, aside, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    case 1:
        MPI_Probe(MPI_ANY_SOURCE, aside, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&found, 1, MPI_LONG, other, aside, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    case 2:
        MPI_Irecv(&found, 1, MPI_LONG, MPI_ANY_SOURCE, aside, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case 3:
        MPI_Mprobe(other, aside, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&found, 1, MPI_LONG, &message, MPI_STATUS_IGNORE);
        break;
    }
    CHECK_EQUAL(found, round);
}

static void *beside(void *argument)
{
    (void)argument;
    for (int round = 0; round < rounds; round++) {
        pthread_barrier_wait(&together);
        /* It comes at any time, also while the other one looks for its message. */
        for (volatile int idle = 0; idle < round * 97 % 4096; idle++)
            continue;
        receive_one(round);
        pthread_barrier_wait(&together);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, other;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK_EQUAL(check_size, 2);
    CHECK_EQUAL(provided, MPI_THREAD_MULTIPLE);
    other = 1 - check_rank;
    pthread_t thread;
    pthread_barrier_init(&together, NULL, 2);
    CHECK_EQUAL(pthread_create(&thread, NULL, beside, NULL), 0);
    for (int round = 0; round < rounds; round++) {
        long number = round;
        pthread_barrier_wait(&together);
        for (int exchange = 0; exchange < exchanges; exchange++) {
            long out = exchange, in = -1;
            if (check_rank == 1)
                MPI_Recv(&in, 1, MPI_LONG, other, there, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (exchange == exchanges - 2)
                MPI_Send(&number, 1, MPI_LONG, other, aside, MPI_COMM_WORLD);
            MPI_Send(&out, 1, MPI_LONG, other, there, MPI_COMM_WORLD);
            if (check_rank == 0)
                MPI_Recv(&in, 1, MPI_LONG, other, there, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_EQUAL(in, exchange);
        }
        pthread_barrier_wait(&together);
    }
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    return check_end("threads_beside");
}
