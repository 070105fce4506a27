/* Messages whose sender stops in the middle of writing one, as one that loses its processor does: its data goes on in a page that it may not read until it is
 * told to go on. Meanwhile another rank's message comes, the receive is cancelled, or, with the argument "die", the sender is killed (to be run with mpiexec
 * --survive then). What a receive did not receive must not be in its memory. */
#define _GNU_SOURCE
#include "stopping.h"

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

enum { RECEIVER, STOPPED, OTHER, RANKS, ROOM = MOST + 64, GO = 6, LEFT = 0x77 };

/* In memory of all ranks. */
struct shared {
    volatile int stopped, sent, goes_on;
};

static struct shared *shared;
static int dies;

/* The sender has come to the second page. */
static void stop(int number)
{
    (void)number;
    shared->stopped = 1;
    if (dies)
        raise(SIGKILL);
    await(&shared->goes_on);
    if (!allow(PROT_READ | PROT_WRITE))
        _exit(96);
}

static void check_received(const unsigned char *data, const MPI_Status *status, int source, int length)
{
    int count, place;
    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK_EQUAL(status->MPI_SOURCE, source);
    CHECK_EQUAL(count, length);
    CHECK_EQUAL(wrong_byte(data, (size_t)length, (uint64_t)length), -1);
    for (place = length; place < ROOM && data[place] == LEFT; place++)
        ;
    CHECK(place == ROOM, "byte %d behind %d received ones was written over", place, length);
}

/* Looks for a while at a receive. Returns whether it is complete. */
static int look_at(MPI_Request request, MPI_Status *status)
{
    int flag = 0;
    for (int look = 0; look < 100 && !flag; look++)
        MPI_Request_get_status(request, &flag, status);
    return flag;
}

enum kind { NAMED, ANY, CANCELLED, ANY_CANCELLED, BLOCKING, KINDS };

static void receive(enum kind kind, int length)
{
    static unsigned char data[ROOM], second[ROOM];
    MPI_Request request;
    MPI_Status status;
    int cancelled, source = kind == NAMED || kind == CANCELLED ? STOPPED : MPI_ANY_SOURCE;
    memset(data, LEFT, ROOM);
    memset(second, LEFT, ROOM);
    if (kind == BLOCKING) {
        /* Which of the two it takes depends on when it comes to look. */
        await(&shared->stopped);
        MPI_Recv(data, ROOM, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
        int first = status.MPI_SOURCE;
        check_received(data, &status, first, first == STOPPED ? length : 8);
        MPI_Recv(second, ROOM, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
        check_received(second, &status, STOPPED + OTHER - first, first == STOPPED ? 8 : length);
        return;
    }
    MPI_Irecv(data, ROOM, MPI_BYTE, source, TAG, MPI_COMM_WORLD, &request);
    await(&shared->stopped);
    if (!dies)
        CHECK(!look_at(request, &status), "a message is received that is not all there");
    else {
        int acknowledged = 0;
        while (!look_at(request, &status))
            ;
#if __has_include(<mpi-ext.h>)
        MPIX_Comm_ack_failed(MPI_COMM_WORLD, RANKS, &acknowledged);
#endif
        CHECK_EQUAL(acknowledged, 1);
    }
    MPI_Send(NULL, 0, MPI_BYTE, OTHER, GO, MPI_COMM_WORLD);
    await(&shared->sent);
    if (dies) {
        /* What is left is the message of the other. */
        SUCCEEDS(MPI_Wait(&request, &status));
        CHECK_EQUAL(wrong_byte(data, 8, 8), -1);
        CHECK_EQUAL(status.MPI_SOURCE, OTHER);
        return;
    }
    /* Of a short message nothing may be known yet, so that the other's is the first one. */
    int first = look_at(request, &status) ? OTHER : STOPPED;
    CHECK(first == STOPPED || source == MPI_ANY_SOURCE, "a message is received that is not all there");
    if (kind == CANCELLED || kind == ANY_CANCELLED)
        MPI_Cancel(&request);
    shared->goes_on = 1;
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (cancelled) {
        for (int place = 0; place < ROOM; place++)
            CHECK(data[place] == LEFT, "byte %d of the memory of a cancelled receive was written over", place);
        MPI_Recv(data, ROOM, MPI_BYTE, first, TAG, MPI_COMM_WORLD, &status);
    }
    check_received(data, &status, first, first == STOPPED ? length : 8);
    MPI_Recv(second, ROOM, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
    check_received(second, &status, STOPPED + OTHER - first, first == STOPPED ? 8 : length);
}

static void go(enum kind kind, int length, int behind)
{
    unsigned char eight[8];
    if (check_rank == RECEIVER)
        memset(shared, 0, sizeof *shared);
    MPI_Barrier(MPI_COMM_WORLD);
    switch (check_rank) {
    case RECEIVER: receive(kind, length); break;
    case STOPPED: send_stopping(length, behind, RECEIVER); break;
    default:
        fill_bytes(eight, 8, 8);
        if (kind == BLOCKING) {
            await(&shared->stopped);
            sleep_ms(2);
        } else
            MPI_Recv(NULL, 0, MPI_BYTE, RECEIVER, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(eight, 8, MPI_BYTE, RECEIVER, TAG, MPI_COMM_WORLD);
        shared->sent = 1;
        if (kind == BLOCKING) {
            sleep_ms(5);
            shared->goes_on = 1;
        }
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    CHECK_EQUAL(check_size, RANKS);
    dies = argc > 1 && strcmp(argv[1], "die") == 0;
    shared = start_stopping(RECEIVER, sizeof *shared, stop);
    if (dies) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        go(ANY, 8000, 5000);
        if (check_rank == RECEIVER)
            printf("partial: ok\n");
        MPI_Finalize();
        return 0;
    }
    static const int lengths[][2] = {{300, 100}, {1000, 500}, {4000, 3000}, {6000, 3000}, {12000, 11000}, {16384, 14000}};
    for (enum kind kind = NAMED; kind < KINDS; kind++)
        for (size_t which = 0; which < sizeof lengths / sizeof lengths[0]; which++)
            go(kind, lengths[which][0], lengths[which][1]);
    MPI_Win_free(&window);
    return check_end("partial");
}
