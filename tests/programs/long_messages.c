/* Messages of argument 2 bytes between rank 0 and rank 1, both ways at once, argument 1 times; with "until_killed" as the third argument for ever, and each
 * rank tells which process it is. With "survive" rank 1 is killed from outside: rank 0 hears by name that it is gone, and its memory is its own again. */
#include "check.h"

#if __has_include(<mpi-ext.h>) /* MPICH has the class in its mpi.h */
#include <mpi-ext.h>
#endif

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    long rounds = argc > 1 ? atol(argv[1]) : 10;
    size_t length = argc > 2 ? (size_t)atol(argv[2]) : 4000000;
    const char *how = argc > 3 ? argv[3] : "";
    int survive = strcmp(how, "survive") == 0, forever = survive || strcmp(how, "until_killed") == 0;
    unsigned char *out = malloc(length), *in = malloc(length);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, survive ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
    for (long round = 0; check_rank < 2 && (forever || round < rounds); round++) {
        MPI_Request requests[2];
        memset(out, (int)(round + check_rank) & 127, length);
        memset(in, 255, length);
        MPI_Status statuses[2];
        requests[0] = requests[1] = MPI_REQUEST_NULL;
        int failed = MPI_Irecv(in, (int)length, MPI_BYTE, 1 - check_rank, 1, MPI_COMM_WORLD, &requests[0]);
        if (!failed)
            failed = MPI_Isend(out, (int)length, MPI_BYTE, 1 - check_rank, 1, MPI_COMM_WORLD, &requests[1]);
        int waited = MPI_Waitall(2, requests, statuses);
        if (waited == MPI_ERR_IN_STATUS)
            waited = statuses[0].MPI_ERROR ? statuses[0].MPI_ERROR : statuses[1].MPI_ERROR;
        if (!failed)
            failed = waited;
        if (failed) {
            char text[MPI_MAX_ERROR_STRING];
            int class, count;
            MPI_Error_class(failed, &class);
            MPI_Error_string(failed, text, &count);
            CHECK(survive && class == MPIX_ERR_PROC_FAILED, "failed: %s", text);
            /* It is over: nobody writes to this memory any more. */
            memset(in, 77, length);
            for (int turn = 0; turn < 200; turn++) {
                int flag;
                MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
                for (size_t at = 0; at < length; at += 997)
                    CHECK(in[at] == 77, "byte %zu was written after the failure", at);
            }
            printf("long_messages: rank 1 is gone\n");
            fflush(stdout);
            MPI_Finalize();
            return 0;
        }
        unsigned char expected = (round + 1 - check_rank) & 127;
        for (size_t at = 0; at < length; at += at + 4099 < length ? 4099 : 1)
            CHECK(in[at] == expected, "byte %zu of round %ld is %d, not %d", at, round, in[at], expected);
        if (forever && round == 3) {
            printf("rank %d is process %d\n", check_rank, (int)getpid());
            fflush(stdout);
        }
    }
    if (check_rank == 0)
        printf("long_messages: ok\n");
    MPI_Finalize();
    return 0;
}
