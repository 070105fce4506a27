/* A token goes round `rounds` times (argument 1), carrying `bytes` (argument 2); each rank adds one to its first word. */
#include "check.h"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    size_t bytes = argc > 2 ? (size_t)atol(argv[2]) : 8;
    int next = (check_rank + 1) % check_size, previous = (check_rank + check_size - 1) % check_size;
    unsigned char *token = calloc(bytes, 1);
    for (int round = 0; round < rounds; round++) {
        uint64_t count;
        if (check_size == 1) {
            MPI_Request request;
            MPI_Irecv(token, (int)bytes, MPI_BYTE, 0, round, MPI_COMM_WORLD, &request);
            unsigned char *copy = malloc(bytes);
            fill_bytes(copy, bytes, (uint64_t)round);
            MPI_Send(copy, (int)bytes, MPI_BYTE, 0, round, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK_EQUAL(wrong_byte(token, bytes, (uint64_t)round), -1);
            free(copy);
            continue;
        }
        if (check_rank == 0) {
            fill_bytes(token, bytes, (uint64_t)round);
            count = (uint64_t)round * 1000;
            memcpy(token, &count, 8);
            MPI_Send(token, (int)bytes, MPI_BYTE, next, round, MPI_COMM_WORLD);
            memset(token, 0, bytes);
        }
        MPI_Status status;
        MPI_Recv(token, (int)bytes, MPI_BYTE, previous, round, MPI_COMM_WORLD, &status);
        CHECK_EQUAL(status.MPI_SOURCE, previous);
        CHECK_EQUAL(status.MPI_TAG, round);
        int received;
        MPI_Get_count(&status, MPI_BYTE, &received);
        CHECK_EQUAL(received, bytes);
        memcpy(&count, token, 8);
        CHECK_EQUAL(count, (uint64_t)round * 1000 + (uint64_t)(check_rank == 0 ? check_size - 1 : check_rank - 1));
        if (check_rank != 0) {
            count++;
            memcpy(token, &count, 8);
            MPI_Send(token, (int)bytes, MPI_BYTE, next, round, MPI_COMM_WORLD);
        } else {
            /* The rest of the token came round unchanged. */
            uint64_t first = ((uint64_t)round) * 0xbf58476d1ce4e5b9u;
            memcpy(token, &first, 8);
            CHECK_EQUAL(wrong_byte(token, bytes, (uint64_t)round), -1);
        }
    }
    free(token);
    return check_end("ring");
}
