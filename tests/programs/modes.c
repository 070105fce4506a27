/* Point to point in all its modes between every pair of ranks, at sizes on both sides of every protocol's threshold. */
#include "check.h"

static const int sizes[] = {0, 1, 7, 8, 40, 63, 64, 65, 200, 1000, 4096, 10000, 65536, 100001, 1 << 20};
enum { size_count = sizeof sizes / sizeof *sizes };

enum mode { STANDARD, BUFFERED, SYNCHRONOUS, READY, MODES };
static const char *const mode_names[] = {"standard", "buffered", "synchronous", "ready"};

static int send_now(enum mode mode, const void *data, int length, int peer, int tag)
{
    switch (mode) {
    case STANDARD: return MPI_Send(data, length, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
    case BUFFERED: return MPI_Bsend(data, length, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
    case SYNCHRONOUS: return MPI_Ssend(data, length, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
    default: return MPI_Rsend(data, length, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
    }
}

static int send_later(enum mode mode, const void *data, int length, int peer, int tag, MPI_Request *request)
{
    switch (mode) {
    case STANDARD: return MPI_Isend(data, length, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request);
    case BUFFERED: return MPI_Ibsend(data, length, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request);
    case SYNCHRONOUS: return MPI_Issend(data, length, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request);
    default: return MPI_Irsend(data, length, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request);
    }
}

static int send_persistent(enum mode mode, const void *data, int length, int peer, int tag, MPI_Request *request)
{
    switch (mode) {
    case STANDARD: return MPI_Send_init(data, length, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request);
    case BUFFERED: return MPI_Bsend_init(data, length, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request);
    case SYNCHRONOUS: return MPI_Ssend_init(data, length, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request);
    default: return MPI_Rsend_init(data, length, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request);
    }
}

/* A ready send needs its receive posted: the receiver says so first. */
static void announce(enum mode mode, int peer, int tag)
{
    if (mode == READY)
        MPI_Send(NULL, 0, MPI_BYTE, peer, tag + 100000, MPI_COMM_WORLD);
}

static void await_announcement(enum mode mode, int peer, int tag)
{
    if (mode == READY)
        MPI_Recv(NULL, 0, MPI_BYTE, peer, tag + 100000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void check_received(const void *data, int length, MPI_Status *status, int peer, int tag, enum mode mode)
{
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK(count == length, "%s mode: got %d bytes of %d", mode_names[mode], count, length);
    CHECK_EQUAL(status->MPI_SOURCE, peer);
    CHECK_EQUAL(status->MPI_TAG, tag);
    long long wrong = wrong_byte(data, (size_t)length, (uint64_t)(tag * 31 + length));
    CHECK(wrong < 0, "%s mode, %d bytes: byte %lld is wrong", mode_names[mode], length, wrong);
}

static void exchange(int sender, int receiver, enum mode mode, int length, int tag, unsigned char *data)
{
    MPI_Request request;
    MPI_Status status;
    uint64_t seed = (uint64_t)(tag * 31 + length);
    if (check_rank == sender) {
        fill_bytes(data, (size_t)length, seed);
        await_announcement(mode, receiver, tag);
        SUCCEEDS(send_now(mode, data, length, receiver, tag));
        memset(data, 0xee, (size_t)length);

        fill_bytes(data, (size_t)length, seed + 31);
        await_announcement(mode, receiver, tag + 1);
        SUCCEEDS(send_later(mode, data, length, receiver, tag + 1, &request));
        MPI_Wait(&request, &status);
        CHECK(request == MPI_REQUEST_NULL, "a completed request is null");

        SUCCEEDS(send_persistent(mode, data, length, receiver, tag + 2, &request));
        for (int round = 0; round < 3; round++) {
            fill_bytes(data, (size_t)length, seed + 62);
            await_announcement(mode, receiver, tag + 2);
            MPI_Start(&request);
            MPI_Wait(&request, &status);
            CHECK(request != MPI_REQUEST_NULL, "a persistent request stays");
        }
        MPI_Request_free(&request);
    } else if (check_rank == receiver) {
        memset(data, 0, (size_t)length);
        if (mode == READY) {
            MPI_Irecv(data, length, MPI_BYTE, sender, tag, MPI_COMM_WORLD, &request);
            announce(mode, sender, tag);
            MPI_Wait(&request, &status);
        } else {
            SUCCEEDS(MPI_Recv(data, length, MPI_BYTE, sender, tag, MPI_COMM_WORLD, &status));
        }
        check_received(data, length, &status, sender, tag, mode);

        memset(data, 0, (size_t)length);
        SUCCEEDS(MPI_Irecv(data, length, MPI_BYTE, MPI_ANY_SOURCE, tag + 1, MPI_COMM_WORLD, &request));
        announce(mode, sender, tag + 1);
        int done = 0;
        while (!done)
            MPI_Test(&request, &done, &status);
        CHECK(request == MPI_REQUEST_NULL, "a completed request is null");
        check_received(data, length, &status, sender, tag + 1, mode);

        SUCCEEDS(MPI_Recv_init(data, length, MPI_BYTE, sender, tag + 2, MPI_COMM_WORLD, &request));
        for (int round = 0; round < 3; round++) {
            memset(data, 0, (size_t)length);
            MPI_Start(&request);
            announce(mode, sender, tag + 2);
            MPI_Wait(&request, &status);
            check_received(data, length, &status, sender, tag + 2, mode);
        }
        MPI_Request_free(&request);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    unsigned char *data = malloc(2 << 20);
    void *attached = malloc((48 << 20) + 64 * MPI_BSEND_OVERHEAD), *detached;
    int attached_size = (48 << 20) + 64 * MPI_BSEND_OVERHEAD, detached_size;
    MPI_Buffer_attach(attached, attached_size);
    int tag = 1;
    for (int mode = 0; mode < MODES; mode++)
        for (int size = 0; size < size_count; size++)
            for (int sender = 0; sender < check_size; sender++)
                for (int receiver = 0; receiver < check_size; receiver++)
                    if (sender != receiver) {
                        exchange(sender, receiver, mode, sizes[size], tag, data);
                        tag += 3;
                    }
    MPI_Buffer_detach(&detached, &detached_size);
    CHECK(detached == attached, "the detached buffer is the attached one");
    CHECK_EQUAL(detached_size, attached_size);
    free(attached);
    free(data);
    return check_end("modes");
}
