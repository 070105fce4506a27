/* MPI_THREAD_MULTIPLE: several threads of each rank send, receive, probe and reduce at once, on shared and on own communicators. */
#include "check.h"

#include <pthread.h>

enum { threads = 4, rounds = 300 };
static MPI_Comm own[threads];

static void *storm(void *argument)
{
    int thread = (int)(intptr_t)argument, right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    for (int round = 0; round < rounds; round++) {
        int length = (round * 37 + thread) % 3 == 0 ? 20000 : 16;
        unsigned char *out = malloc((size_t)length), *in = malloc((size_t)length);
        uint64_t seed = (uint64_t)(round * 100 + thread);
        fill_bytes(out, (size_t)length, seed + (uint64_t)check_rank * 7919);
        MPI_Request requests[2];
        /* All threads share the world; the tag tells them apart. */
        MPI_Irecv(in, length, MPI_BYTE, left, thread, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, length, MPI_BYTE, right, thread, MPI_COMM_WORLD, &requests[1]);
        if (round % 2) {
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else {
            int done = 0;
            while (!done)
                MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
        }
        CHECK(wrong_byte(in, (size_t)length, seed + (uint64_t)left * 7919) < 0, "thread %d round %d", thread, round);
        long one = thread + 1, sum;
        MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, own[thread]);
        CHECK_EQUAL(sum, (long)check_size * (thread + 1));
        if (round % 10 == 0) {
            MPI_Message message;
            MPI_Status status;
            MPI_Isend(out, length, MPI_BYTE, right, 100 + thread, own[thread], &requests[0]);
            MPI_Mprobe(MPI_ANY_SOURCE, 100 + thread, own[thread], &message, &status);
            MPI_Mrecv(in, length, MPI_BYTE, &message, &status);
            CHECK(wrong_byte(in, (size_t)length, seed + (uint64_t)left * 7919) < 0, "matched, thread %d round %d", thread, round);
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        }
        free(out);
        free(in);
    }
    return NULL;
}

/* One thread waits in a receive while another sends to it from the same rank. */
static void *waiter(void *argument)
{
    int *value = argument;
    MPI_Recv(value, 1, MPI_INT, check_rank, 500, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK_EQUAL(provided, MPI_THREAD_MULTIPLE);
    pthread_t handles[threads];
    for (int thread = 0; thread < threads; thread++)
        MPI_Comm_dup(MPI_COMM_WORLD, &own[thread]);
    for (int thread = 0; thread < threads; thread++)
        pthread_create(&handles[thread], NULL, storm, (void *)(intptr_t)thread);
    for (int thread = 0; thread < threads; thread++)
        pthread_join(handles[thread], NULL);
    int got = 0, sent = 99;
    pthread_create(&handles[0], NULL, waiter, &got);
    sleep_ms(50);
    MPI_Send(&sent, 1, MPI_INT, check_rank, 500, MPI_COMM_WORLD);
    pthread_join(handles[0], NULL);
    CHECK_EQUAL(got, 99);
    for (int thread = 0; thread < threads; thread++)
        MPI_Comm_free(&own[thread]);
    return check_end("threads");
}
