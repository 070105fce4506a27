/* Sends that nobody receives are taken back, though their target computes (MPI 5.0, section 3.8.4); what was received is not. */
#include "check.h"

enum { LONG = 3 << 20, TAGS = 5 };

static MPI_Request start(int kind, char *data, int target, MPI_Datatype gaps)
{
    MPI_Request request;
    switch (kind) {
    case 0: MPI_Issend(data, 8, MPI_BYTE, target, kind, MPI_COMM_WORLD, &request); break;
    case 1: MPI_Issend(data, 5000, MPI_BYTE, target, kind, MPI_COMM_WORLD, &request); break;
    case 2: MPI_Issend(data, LONG, MPI_BYTE, target, kind, MPI_COMM_WORLD, &request); break;
    case 3: MPI_Isend(data, LONG, MPI_BYTE, target, kind, MPI_COMM_WORLD, &request); break;
    default: MPI_Issend(data, 1, gaps, target, kind, MPI_COMM_WORLD, &request); break;
    }
    return request;
}

static int cancelled(MPI_Request *request)
{
    MPI_Status status;
    int flag;
    SUCCEEDS(MPI_Cancel(request));
    SUCCEEDS(MPI_Wait(request, &status));
    SUCCEEDS(MPI_Test_cancelled(&status, &flag));
    return flag;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size, flag, value, gone;
    char *data = malloc(LONG), *back = malloc(LONG);
    MPI_Status status;
    MPI_Datatype gaps;
    MPI_Type_vector(LONG / 2048, 1024, 2048, MPI_BYTE, &gaps);
    MPI_Type_commit(&gaps);
    memset(data, 0, LONG);
    memset(back, 0, LONG);

    /* Nobody receives them: even ranks send while odd ones compute, then the other way round. */
    for (int turn = 0; turn < 2; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank % 2 == turn) {
            for (int kind = 0; kind < TAGS; kind++) {
                MPI_Request request = start(kind, data, right, gaps);
                CHECK(cancelled(&request), "send %d, which nobody receives, is taken back", kind);
            }
            /* Several at once, the middle one first; and the others with the same tag are left alone. */
            MPI_Request three[3];
            for (int number = 0; number < 3; number++) {
                memset(data + number, number + 1, 1);
                MPI_Issend(data + number, 1, MPI_BYTE, right, 20, MPI_COMM_WORLD, &three[number]);
            }
            CHECK(cancelled(&three[1]), "the second of three");
            MPI_Send(&turn, 1, MPI_INT, right, 21, MPI_COMM_WORLD);
            if (right == check_rank) {
                for (int number = 0; number < 3; number += 2)
                    MPI_Recv(&back[number], 1, MPI_BYTE, left, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Recv(&value, 1, MPI_INT, left, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            SUCCEEDS(MPI_Wait(&three[0], MPI_STATUS_IGNORE));
            SUCCEEDS(MPI_Wait(&three[2], MPI_STATUS_IGNORE));
        } else {
            for (double until = MPI_Wtime() + 0.1; MPI_Wtime() < until;)
                ;
        }
        if (left % 2 == turn && left != check_rank) {
            SUCCEEDS(MPI_Recv(&value, 1, MPI_INT, left, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int number = 0; number < 3; number += 2) {
                SUCCEEDS(MPI_Recv(back, 1, MPI_BYTE, left, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                CHECK_EQUAL(back[0], number + 1);
            }
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            CHECK(!flag, "nothing else has come");
        }
    }

    /* A receive that is posted before has the message, whatever its sender tries; one that is posted meanwhile has it or not, and the sender knows. */
    for (int round = 0; round < 40; round++) {
        int kind = round % TAGS, posted_before = round / TAGS % 2, told;
        size_t length = kind == 0 ? 8 : kind == 1 ? 5000 : kind == 4 ? LONG / 2 : LONG;
        MPI_Request receive, send;
        fill_bytes(data, LONG, (uint64_t)(round * 7 + check_rank));
        memset(back, 0, LONG);
        if (posted_before)
            MPI_Irecv(back, LONG, MPI_BYTE, left, kind, MPI_COMM_WORLD, &receive);
        MPI_Barrier(MPI_COMM_WORLD);
        send = start(kind, data, right, gaps);
        MPI_Cancel(&send);
        if (!posted_before)
            MPI_Irecv(back, LONG, MPI_BYTE, left, kind, MPI_COMM_WORLD, &receive);
        SUCCEEDS(MPI_Wait(&send, &status));
        MPI_Test_cancelled(&status, &gone);
        CHECK(!(posted_before && gone), "send %d was expected", kind);
        MPI_Sendrecv(&gone, 1, MPI_INT, right, 30, &told, 1, MPI_INT, left, 30, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (told)
            CHECK(cancelled(&receive), "a message that was taken back never comes");
        else {
            SUCCEEDS(MPI_Wait(&receive, &status));
            int bytes;
            MPI_Get_count(&status, MPI_BYTE, &bytes);
            CHECK_EQUAL(bytes, length);
            if (kind != 4)
                CHECK_EQUAL(wrong_byte(back, length / 8 * 8, (uint64_t)(round * 7 + left)), -1);
        }
    }

    /* What a process has sent to itself is back at once: programs ask once, and receive it if it is not. */
    int open = 0;
    for (int round = 0; round < 3000; round++) {
        MPI_Request request = start(round % 50 < 3 ? 2 + round % 50 : round % 2, data, check_rank, gaps);
        SUCCEEDS(MPI_Cancel(&request));
        SUCCEEDS(MPI_Request_get_status(request, &flag, &status));
        open += !flag;
        SUCCEEDS(MPI_Wait(&request, &status));
        SUCCEEDS(MPI_Test_cancelled(&status, &gone));
        CHECK(gone, "send %d to itself is taken back", round);
    }
    CHECK_EQUAL(open, 0);
    MPI_Type_free(&gaps);
    free(data);
    free(back);
    return check_end("cancel_sends");
}
