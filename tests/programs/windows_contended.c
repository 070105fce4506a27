/* Every rank takes the lock of every rank, again and again, with its hands full of requests, and then sleeps in a barrier while others still wait for
 * locks: whoever is asked for its lock then must wake when it is given back (MPI 5.0, section 12.5.3). */
#include "check.h"

int main(int argc, char **argv)
{
    enum { MOST = 9 };
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 1000;
    double *counts;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate(2 * MOST * sizeof *counts, sizeof *counts, MPI_INFO_NULL, MPI_COMM_WORLD, &counts, &win);
    memset(counts, 0, 2 * MOST * sizeof *counts);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < rounds; round++) {
        int count = 1 + (round + 5 * rank) % MOST;
        for (int step = 0; step < size; step++) {
            int target = (rank + step) % size, shares = (round + rank) % 3 == 0;
            double ones[MOST], seen[MOST], raised[MOST];
            for (int index = 0; index < MOST; index++)
                ones[index] = 1;
            MPI_Win_lock(shares ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win);
            MPI_Get_accumulate(ones, count, MPI_DOUBLE, seen, count, MPI_DOUBLE, target, 0, count, MPI_DOUBLE, MPI_SUM, win);
            MPI_Win_flush(target, win);
            if (!shares) {
                /* Nobody else is between these two. */
                MPI_Get(raised, count, MPI_DOUBLE, target, MOST, count, MPI_DOUBLE, win);
                MPI_Win_flush(target, win);
                for (int index = 0; index < count; index++)
                    raised[index] += 1;
                MPI_Put(raised, count, MPI_DOUBLE, target, MOST, count, MPI_DOUBLE, win);
            }
            MPI_Win_unlock(target, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    /* How often each double was raised at each rank: by all, and by those who were alone. */
    double all[MOST] = {0}, alone[MOST] = {0};
    for (int other = 0; other < size; other++)
        for (int round = 0; round < rounds; round++)
            for (int index = 0; index < 1 + (round + 5 * other) % MOST; index++) {
                all[index]++;
                alone[index] += (round + other) % 3 != 0;
            }
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    for (int index = 0; index < MOST; index++) {
        CHECK(counts[index] == all[index], "rank %d, %d: %g, not %g", rank, index, counts[index], all[index]);
        CHECK(counts[MOST + index] == alone[index], "rank %d, %d alone: %g, not %g", rank, index, counts[MOST + index], alone[index]);
    }
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    if (rank == 0)
        printf("windows_contended: ok\n");
    return 0;
}
