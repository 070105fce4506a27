/* MPI_THREAD_MULTIPLE: several threads of each rank, each with a communicator of its own and messages in flight on it, in an order and of lengths that depend on
 * chance. On every communicator source and tag are the same, so that only the context tells the threads' messages apart. */
#include "check.h"

#include <pthread.h>

enum { threads = 5, rounds = 400, longest = 150000, in_flight = 6 };
static MPI_Comm own[threads];

typedef struct Stream {
    uint64_t state;
} Stream;

static uint64_t draw(Stream *stream, uint64_t below)
{
    stream->state++;
    return check_mix(stream->state) % below;
}

/* The same on both sides of a message. */
static int length_of(int thread, int sender, int number)
{
    Stream stream = {(uint64_t)thread * 1000003 + (uint64_t)sender * 7919 + (uint64_t)number * 104729};
    switch (draw(&stream, 8)) {
    case 0: return (int)draw(&stream, longest);
    case 1: return (int)draw(&stream, 5000);
    default: return (int)draw(&stream, 64);
    }
}

static uint64_t seed_of(int thread, int sender, int number)
{
    return check_mix((uint64_t)thread << 40 ^ (uint64_t)sender << 32 ^ (uint64_t)number);
}

/* Windows of messages to the right and from the left, begun and ended in any order. */
static void windows(int thread, MPI_Comm comm, Stream *stream, int first)
{
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    unsigned char *out[in_flight], *in[in_flight];
    MPI_Request requests[2 * in_flight];
    MPI_Datatype pairs;
    MPI_Type_vector(1, 2, 3, MPI_BYTE, &pairs);
    MPI_Type_commit(&pairs);
    int receives = 0, sends = 0;
    while (receives < in_flight || sends < in_flight) {
        if (sends == in_flight || (receives < in_flight && draw(stream, 2) == 0)) {
            int length = length_of(thread, left, first + receives);
            in[receives] = malloc((size_t)length + 1);
            int source = draw(stream, 3) == 0 ? MPI_ANY_SOURCE : left, tag = draw(stream, 3) == 0 ? MPI_ANY_TAG : 0;
            MPI_Irecv(in[receives], length, MPI_BYTE, source, tag, comm, &requests[receives]);
            receives++;
        } else {
            int length = length_of(thread, check_rank, first + sends);
            out[sends] = malloc((size_t)length + 1);
            fill_bytes(out[sends], (size_t)length, seed_of(thread, check_rank, first + sends));
            if (length % 2 == 0 && draw(stream, 2) == 0)
                MPI_Isend(out[sends], length / 2, pairs, right, 0, comm, &requests[in_flight + sends]);
            else if (draw(stream, 4) == 0)
                MPI_Issend(out[sends], length, MPI_BYTE, right, 0, comm, &requests[in_flight + sends]);
            else
                MPI_Isend(out[sends], length, MPI_BYTE, right, 0, comm, &requests[in_flight + sends]);
            sends++;
        }
    }
    switch (draw(stream, 3)) {
    case 0:
        MPI_Waitall(2 * in_flight, requests, MPI_STATUSES_IGNORE);
        break;
    case 1:
        for (int index, left_over = 2 * in_flight; left_over > 0; left_over--)
            MPI_Waitany(2 * in_flight, requests, &index, MPI_STATUS_IGNORE);
        break;
    default:
        for (int done = 0; !done;)
            MPI_Testall(2 * in_flight, requests, &done, MPI_STATUSES_IGNORE);
    }
    MPI_Type_free(&pairs);
    for (int message = 0; message < in_flight; message++) {
        size_t length = (size_t)length_of(thread, left, first + message);
        long long wrong = wrong_byte(in[message], length, seed_of(thread, left, first + message));
        CHECK(wrong < 0, "thread %d, message %d of %zu bytes, byte %lld", thread, first + message, length, wrong);
        free(in[message]);
        free(out[message]);
    }
}

/* Blocking exchanges of one number, as fast as they go. */
static void answers(int thread, MPI_Comm comm, int count)
{
    int peer = check_rank ^ 1;
    if (peer >= check_size)
        return;
    for (long number = 0; number < count; number++) {
        long value = number * threads + thread, got = -1;
        if (check_rank < peer) {
            MPI_Send(&value, 1, MPI_LONG, peer, 1, comm);
            MPI_Recv(&got, 1, MPI_LONG, peer, 1, comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&got, 1, MPI_LONG, peer, 1, comm, MPI_STATUS_IGNORE);
            MPI_Send(&got, 1, MPI_LONG, peer, 1, comm);
        }
        CHECK_EQUAL(got, value);
    }
}

static void *work(void *argument)
{
    int thread = (int)(intptr_t)argument;
    MPI_Comm comm = own[thread];
    Stream stream = {(uint64_t)thread << 20 | (uint64_t)check_rank};
    for (int round = 0; round < rounds; round++) {
        if (round % 4 == 0)
            windows(thread, comm, &stream, round * in_flight);
        else
            answers(thread, comm, 10 + round % 50);
        if (round % 20 == thread) {
            long mine = check_rank + thread + round, sum;
            MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
            CHECK_EQUAL(sum, (long)check_size * (thread + round) + (long)check_size * (check_size - 1) / 2);
        }
    }
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
    for (int thread = 1; thread < threads; thread++)
        pthread_create(&handles[thread], NULL, work, (void *)(intptr_t)thread);
    work((void *)0);
    for (int thread = 1; thread < threads; thread++)
        pthread_join(handles[thread], NULL);
    for (int thread = 0; thread < threads; thread++)
        MPI_Comm_free(&own[thread]);
    return check_end("thread_pairs");
}
