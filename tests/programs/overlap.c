/* Rank 0 computes without calling MPI, and everything goes on: messages that it expects arrive and their synchronous sender gets on, messages that it
 * has started to send are received, and what is put into its window is there. Nothing is timed: rank 0 looks at its memory until what it waits for
 * is there, and gives up after argument 1 seconds. */
#include "check.h"

static int patience = 20;
static volatile int flag;

/* Computes, and calls nothing of MPI, until `there` holds. */
static void compute_until(int (*there)(const volatile unsigned char *, size_t), const volatile unsigned char *data, size_t length, const char *what)
{
    time_t start = time(NULL);
    uint64_t work = 1;
    while (!there(data, length) && time(NULL) - start < patience)
        for (int step = 0; step < 100000; step++)
            work = check_mix(work);
    CHECK(there(data, length) && work, "%zu bytes: %s did not happen in %d s while rank 0 computed", length, what, patience);
}

static int all_there(const volatile unsigned char *data, size_t length)
{
    return data[0] == 1 && data[length / 2] == 1 && data[length - 1] == 1;
}

static int flag_there(const volatile unsigned char *data, size_t length)
{
    (void)data, (void)length;
    return flag;
}

/* Rank 0 posts the receive of what rank 1 says when it has got on. */
static MPI_Request expect_flag(void)
{
    MPI_Request request;
    flag = 0;
    MPI_Irecv((void *)&flag, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
    return request;
}

static void send_flag(void)
{
    int one = 1;
    MPI_Ssend(&one, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
}

static void receiver_computes(unsigned char *data, size_t length)
{
    MPI_Request requests[2];
    if (check_rank == 0) {
        memset(data, 0, length);
        MPI_Irecv(data, (int)length, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[0]);
        requests[1] = expect_flag();
        MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        compute_until(all_there, data, length, "the receive");
        compute_until(flag_there, data, length, "the end of the synchronous send");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else if (check_rank == 1) {
        memset(data, 1, length);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ssend(data, (int)length, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        send_flag();
    }
}

/* As before, but the receive is posted only once the message is known to be there. */
static void late_receiver_computes(unsigned char *data, size_t length)
{
    MPI_Request requests[2];
    if (check_rank == 0) {
        memset(data, 0, length);
        requests[1] = expect_flag();
        MPI_Probe(1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(data, (int)length, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[0]);
        compute_until(all_there, data, length, "the late receive");
        compute_until(flag_there, data, length, "the end of the synchronous send to a late receive");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else if (check_rank == 1) {
        memset(data, 1, length);
        MPI_Ssend(data, (int)length, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        send_flag();
    }
}

static void sender_computes(unsigned char *data, size_t length)
{
    MPI_Request requests[2];
    if (check_rank == 0) {
        memset(data, 1, length);
        requests[0] = expect_flag();
        MPI_Isend(data, (int)length, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[1]);
        compute_until(flag_there, data, length, "the receive of what rank 0 sends");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else if (check_rank == 1) {
        memset(data, 0, length);
        MPI_Recv(data, (int)length, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(all_there(data, length), "%zu bytes were received, and are not there", length);
        send_flag();
    }
}

static void owner_computes(unsigned char *data, size_t length)
{
    MPI_Win win;
    MPI_Request request;
    MPI_Win_create(data, check_rank == 0 ? (MPI_Aint)length : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (check_rank == 0) {
        memset(data, 0, length);
        request = expect_flag();
        MPI_Barrier(MPI_COMM_WORLD);
        compute_until(flag_there, data, length, "the flush of a put");
        CHECK(all_there(data, length), "%zu bytes were put, and are not there", length);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        memset(data, 1, length);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (check_rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Put(data, (int)length, MPI_BYTE, 0, 0, (int)length, MPI_BYTE, win);
        MPI_Win_flush(0, win);
        send_flag();
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (argc > 1)
        patience = atoi(argv[1]);
    static const size_t sizes[] = {4, 100, 5000, 100000, 1000000, 16000000};
    for (int size = 0; size < 6; size++) {
        unsigned char *data = malloc(sizes[size]);
        receiver_computes(data, sizes[size]);
        MPI_Barrier(MPI_COMM_WORLD);
        late_receiver_computes(data, sizes[size]);
        MPI_Barrier(MPI_COMM_WORLD);
        sender_computes(data, sizes[size]);
        MPI_Barrier(MPI_COMM_WORLD);
        owner_computes(data, sizes[size]);
        free(data);
    }
    return check_end("overlap");
}
