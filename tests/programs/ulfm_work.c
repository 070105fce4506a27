/* Ranks that somebody kills from outside, at any moment: the others mend their communicator and go on, until all rounds are done. In each round
 * collectives on the board and by messages, long messages, some with gaps, and receives from anybody are under way. Every value is checked. */
#include "check.h"

#include <mpi-ext.h>

#define BYTES 200000

static char *out, *in;
static MPI_Datatype gaps;

/* One round among those who are left; whether it went well here. What it has begun is over when it returns. */
static int work(MPI_Comm comm, int round)
{
    int rank, size, failed = 0, begun = 0;
    long mine = round, sum;
    MPI_Request requests[6];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int turn = 0; turn < 3 && !failed; turn++) {
        failed = MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
        CHECK(failed || sum == mine * size, "the sum is %ld, not %ld", sum, mine * size);
    }
    if (failed)
        return 0;
    memset(out, round & 127, BYTES);
    memset(in, -1, 5 * BYTES);
#define BEGIN(call)                 \
    do {                            \
        if (!failed) {              \
            failed = call;          \
            begun += !failed;       \
        }                           \
    } while (0)
    BEGIN(MPI_Irecv(in, BYTES, MPI_BYTE, before, 1, comm, &requests[begun]));
    BEGIN(MPI_Irecv(in + 2 * BYTES, 1, gaps, before, 2, comm, &requests[begun]));
    BEGIN(MPI_Irecv(in + 4 * BYTES, 8, MPI_BYTE, MPI_ANY_SOURCE, 3, comm, &requests[begun]));
    BEGIN(MPI_Isend(out, BYTES, MPI_BYTE, next, 1, comm, &requests[begun]));
    BEGIN(MPI_Isend(out, 1, gaps, next, 2, comm, &requests[begun]));
    BEGIN(MPI_Isend(out, 8, MPI_BYTE, next, 3, comm, &requests[begun]));
    if (!failed)
        failed = MPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
    if (failed) {
        MPIX_Comm_revoke(comm);
        for (int index = 0; index < begun; index++)
            if (requests[index] != MPI_REQUEST_NULL)
                MPI_Wait(&requests[index], MPI_STATUS_IGNORE);
        return 0;
    }
    for (int place = 0; place < 5; place += 2)
        CHECK(in[place * BYTES] == (round & 127), "message %d of round %d", place, round);
    CHECK(in[BYTES - 1] == (round & 127), "the end of round %d", round);
    return MPI_Bcast(out, BYTES, MPI_BYTE, round % size, comm) == MPI_SUCCESS && MPI_Barrier(comm) == MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 100, mended = 0, left;
    MPI_Comm comm, other;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    out = malloc(BYTES);
    in = malloc(5 * BYTES);
    MPI_Type_vector(BYTES / 64, 32, 64, MPI_BYTE, &gaps);
    MPI_Type_commit(&gaps);
    printf("rank %d is process %ld\n", check_rank, (long)getpid());
    fflush(stdout);
    for (int round = 0; round < rounds;) {
        int well = work(comm, round);
        if (!well)
            MPIX_Comm_revoke(comm);
        MPIX_Comm_failure_ack(comm);
        int agreed = MPIX_Comm_agree(comm, &well);
        if (well && agreed == MPI_SUCCESS) {
            round++;
            continue;
        }
        SUCCEEDS(MPIX_Comm_shrink(comm, &other));
        MPI_Comm_free(&comm);
        comm = other;
        mended++;
    }
    MPI_Comm_size(comm, &left);
    MPI_Comm_rank(comm, &check_rank);
    if (check_rank == 0) {
        printf("ulfm_work: ok with %d ranks, mended %s\n", left, mended ? "at least once" : "never");
        fflush(stdout);
    }
    MPI_Comm_free(&comm);
    MPI_Type_free(&gaps);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
