/* Ranks that die in the middle of a message in a mailbox lane that they share with others (to be run with mpiexec --survive): 24 ranks, of which every eighth
 * uses the same lane of rank 0's mailbox. In each round one dies while its data goes on in a page that it may not read. Its messages that were whole are
 * received. Of the two that share its lane, one sends all the time, or stops in the middle of a message as well and goes on later; the other one sends
 * afterwards. All that they send must come, once, in its order, and nothing else. */
#define _GNU_SOURCE
#include "stopping.h"

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

enum { LANES = 8, RANKS = 3 * LANES, ROUNDS = LANES - 1, EARLIER = 3, MANY = 700, FEW = 40 };

/* In memory of all ranks, by round. */
struct shared {
    volatile int begins, stopped, dies, goes_on;
};

/* The length of the message, and how much of it lies in the page. */
static const int lengths[ROUNDS][2] = {{8, 4}, {32, 16}, {300, 100}, {300, 290}, {1000, 500}, {4000, 1500}, {12000, 10000}};

static struct shared *shared, *mine;
static int dies;

/* The sender has come to the second page. */
static void stop(int number)
{
    (void)number;
    if (dies) {
        await(&mine->dies);
        raise(SIGKILL);
    }
    mine->stopped = 1;
    await(&mine->goes_on);
    if (!allow(PROT_READ | PROT_WRITE))
        _exit(96);
}

/* How long message `number` of a rank is: mostly short, some of several slots. */
static int length_of(int number)
{
    return number % 10 == 9 ? 300 + number % 7 : 8;
}

static void send_many(int count)
{
    unsigned char data[512];
    for (int number = 0; number < count; number++) {
        fill_bytes(data, (size_t)length_of(number), (uint64_t)(number * RANKS + check_rank));
        MPI_Send(data, length_of(number), MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    }
}

static void receive_many(int source, int count)
{
    unsigned char data[512];
    MPI_Status status;
    int length;
    for (int number = 0; number < count; number++) {
        SUCCEEDS(MPI_Recv(data, sizeof data, MPI_BYTE, source, TAG, MPI_COMM_WORLD, &status));
        MPI_Get_count(&status, MPI_BYTE, &length);
        CHECK_EQUAL(length, length_of(number));
        CHECK_EQUAL(wrong_byte(data, (size_t)length, (uint64_t)(number * RANKS + source)), -1);
    }
}

/* Whether the one that has stopped goes on by itself. */
static int is_busy(int round)
{
    return round % 2 != 0;
}

static void receive(int round)
{
    static unsigned char data[MOST];
    int dead = 1 + round, second = dead + LANES, third = second + LANES, acknowledged = 0, value;
    MPI_Status status;
    mine->begins = 1;
    if (!is_busy(round))
        await(&mine->stopped);
    mine->dies = 1;
    if (is_busy(round)) {
        /* In receives that sleep until they are told of the death. */
        receive_many(third, MANY);
        receive_many(second, MANY);
    }
#if __has_include(<mpi-ext.h>)
    /* As long as the one that has stopped is in the middle of its message, nobody can know what is of the dead. */
    for (int look = 0; look < 20 && !is_busy(round); look++) {
        MPIX_Comm_ack_failed(MPI_COMM_WORLD, RANKS, &acknowledged);
        sleep_ms(1);
    }
    mine->goes_on = 1;
    while (acknowledged <= round)
        MPIX_Comm_ack_failed(MPI_COMM_WORLD, RANKS, &acknowledged);
#endif
    CHECK_EQUAL(acknowledged, round + 1);
    SUCCEEDS(MPI_Recv(&value, 1, MPI_INT, dead, EARLIER, MPI_COMM_WORLD, &status));
    CHECK_EQUAL(value, dead);
    if (!is_busy(round)) {
        MPI_Recv(data, MOST, MPI_BYTE, second, TAG, MPI_COMM_WORLD, &status);
        CHECK_EQUAL(wrong_byte(data, (size_t)lengths[round][0], (uint64_t)lengths[round][0]), -1);
        receive_many(second, FEW);
        receive_many(third, MANY);
    }
    int code = MPI_Recv(data, MOST, MPI_BYTE, dead, TAG, MPI_COMM_WORLD, &status);
    CHECK(code != MPI_SUCCESS, "a message is received that was not sent whole");
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &value, &status);
    CHECK(!value, "a message that nobody sent, of %d bytes from %d", lengths[round][0], status.MPI_SOURCE);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    CHECK_EQUAL(check_size, RANKS);
    shared = start_stopping(0, ROUNDS * sizeof *shared, stop);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    int round = check_rank % LANES - 1, role = check_rank / LANES;
    if (check_rank == 0)
        for (round = 0; round < ROUNDS; round++) {
            mine = &shared[round];
            receive(round);
        }
    else if (round >= 0) {
        mine = &shared[round];
        await(&mine->begins);
        dies = role == 0;
        if (dies)
            MPI_Send(&check_rank, 1, MPI_INT, 0, EARLIER, MPI_COMM_WORLD);
        if (role == 1 && is_busy(round))
            send_many(MANY);
        else if (role < 2)
            send_stopping(lengths[round][0], lengths[round][1], 0);
        if (role == 1 && !is_busy(round))
            send_many(FEW);
        if (role == 2) {
            await(&mine->dies);
            send_many(MANY);
        }
    }
    if (check_rank == 0)
        printf("left_half: ok\n");
    MPI_Finalize();
    return 0;
}
