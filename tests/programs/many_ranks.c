/* More ranks than cores: ring, barrier, allreduce, broadcast and alltoall, `rounds` (argument 1) times. */
#include "check.h"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 20, size = check_size, rank = check_rank;
    int *out = malloc((size_t)size * 100 * sizeof(int)), *in = malloc((size_t)size * 100 * sizeof(int));
    for (int round = 0; round < rounds; round++) {
        int token = -1, sent = rank + round;
        MPI_Sendrecv(&sent, 1, MPI_INT, (rank + 1) % size, round, &token, 1, MPI_INT, (rank + size - 1) % size, round,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQUAL(token, (rank + size - 1) % size + round);
        MPI_Barrier(MPI_COMM_WORLD);
        long one = rank + 1, sum;
        MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        CHECK_EQUAL(sum, (long)size * (size + 1) / 2);
        int word = rank == round % size ? round * 7 : -1;
        MPI_Bcast(&word, 1, MPI_INT, round % size, MPI_COMM_WORLD);
        CHECK_EQUAL(word, round * 7);
        int count = round % 2 ? 100 : 1;
        for (int index = 0; index < size * count; index++)
            out[index] = rank * 100000 + index;
        MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
        for (int from = 0; from < size; from++)
            for (int index = 0; index < count; index++)
                CHECK_EQUAL(in[from * count + index], from * 100000 + rank * count + index);
    }
    free(out);
    free(in);
    return check_end("many_ranks");
}
