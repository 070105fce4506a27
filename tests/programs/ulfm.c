/* User-Level Failure Mitigation: one case a run, named by the first argument. The last ranks die by SIGKILL; with the argument "exit" behind it they
 * exit without MPI_Finalize instead. To be run with mpiexec --survive. */
#include "check.h"

#include <mpi-ext.h>
#include <signal.h>
#include <sys/time.h>

#define LONG (4 << 20)

static int rank, size;
static int dies_by_exit;
static MPI_Comm comm;

#define FAILS(call, wanted)                                                                         \
    do {                                                                                            \
        int class_ = class_of(call);                                                                \
        CHECK(class_ == (wanted), "%s has error class %#x, not %#x", #call, class_, (wanted));      \
    } while (0)

static void die(void)
{
    if (dies_by_exit)
        _exit(3);
    raise(SIGKILL);
}

/* How many of `on` are dead, as this process knows. */
static int count_failed(MPI_Comm on)
{
    MPI_Group group;
    int count;
    SUCCEEDS(MPIX_Comm_get_failed(on, &group));
    SUCCEEDS(MPI_Group_size(group, &count));
    if (group != MPI_GROUP_EMPTY)
        MPI_Group_free(&group);
    return count;
}

static void await_failed(MPI_Comm on, int count)
{
    while (count_failed(on) < count)
        sleep_ms(1);
}

static void acknowledge(MPI_Comm on)
{
    int acknowledged;
    SUCCEEDS(MPIX_Comm_ack_failed(on, size, &acknowledged));
    CHECK_EQUAL(acknowledged, count_failed(on));
}

/* All that must work on a communicator of the living. */
static void use(MPI_Comm on)
{
    int own, count, sum, token = 0;
    double *values = malloc(100000 * sizeof *values);
    MPI_Comm_rank(on, &own);
    MPI_Comm_size(on, &count);
    for (int round = 0; round < 5; round++) {
        int one = own + round;
        SUCCEEDS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, on));
        CHECK_EQUAL(sum, count * (count - 1) / 2 + count * round);
        SUCCEEDS(MPI_Barrier(on));
    }
    for (int index = 0; index < 100000; index++)
        values[index] = own == count - 1 ? index : -1;
    SUCCEEDS(MPI_Bcast(values, 100000, MPI_DOUBLE, count - 1, on));
    for (int index = 0; index < 100000; index++)
        CHECK(values[index] == index, "value %d", index);
    int next = (own + 1) % count, before = (own + count - 1) % count;
    SUCCEEDS(MPI_Sendrecv(&own, 1, MPI_INT, next, 5, &token, 1, MPI_INT, before, 5, on, MPI_STATUS_IGNORE));
    CHECK_EQUAL(token, before);
    free(values);
}

static MPI_Comm shrink(MPI_Comm on, int expected)
{
    MPI_Comm small;
    int count;
    SUCCEEDS(MPIX_Comm_shrink(on, &small));
    MPI_Comm_size(small, &count);
    CHECK_EQUAL(count, expected);
    MPI_Comm_set_errhandler(small, MPI_ERRORS_RETURN);
    use(small);
    return small;
}

/* A posted receive, and one that is blocked, of what a dead process will never send; sends to it; what it had sent before. */
static void point_to_point(void)
{
    int last = size - 1, value = 7, flag;
    MPI_Request requests[2];
    MPI_Status status, statuses[2];
    if (rank == last) {
        SUCCEEDS(MPI_Send(&value, 1, MPI_INT, 0, 1, comm));
        SUCCEEDS(MPI_Recv(&value, 1, MPI_INT, 0, 2, comm, MPI_STATUS_IGNORE));
        die();
    }
    if (rank == 0) {
        SUCCEEDS(MPI_Irecv(&value, 1, MPI_INT, last, 9, comm, &requests[0]));
        SUCCEEDS(MPI_Send(&value, 1, MPI_INT, last, 2, comm));
        FAILS(MPI_Wait(&requests[0], &status), MPIX_ERR_PROC_FAILED);
        CHECK(requests[0] == MPI_REQUEST_NULL, "a failed receive is over");
        value = 0;
        SUCCEEDS(MPI_Recv(&value, 1, MPI_INT, last, 1, comm, &status));
        CHECK_EQUAL(value, 7);
    }
    FAILS(MPI_Recv(&value, 1, MPI_INT, last, 3, comm, &status), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Send(&value, 1, MPI_INT, last, 3, comm), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Ssend(&value, 1, MPI_INT, last, 3, comm), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Probe(last, 3, comm, &status), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Iprobe(last, 3, comm, &flag, &status), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Sendrecv(&value, 1, MPI_INT, rank, 3, &value, 1, MPI_INT, last, 3, comm, &status), MPIX_ERR_PROC_FAILED);
    SUCCEEDS(MPI_Recv(&value, 1, MPI_INT, rank, 3, comm, MPI_STATUS_IGNORE));
    CHECK_EQUAL(count_failed(comm), 1);
    /* Among the living all goes on, on the same communicator. */
    int next = (rank + 1) % last, before = (rank + last - 1) % last, got = -1;
    SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, before, 4, comm, &requests[0]));
    SUCCEEDS(MPI_Isend(&rank, 1, MPI_INT, next, 4, comm, &requests[1]));
    SUCCEEDS(MPI_Waitall(2, requests, statuses));
    CHECK_EQUAL(got, before);
    SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, last, 4, comm, &requests[0]));
    SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, before, 4, comm, &requests[1]));
    SUCCEEDS(MPI_Send(&rank, 1, MPI_INT, next, 4, comm));
    FAILS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    CHECK_EQUAL(class_of(statuses[0].MPI_ERROR), MPIX_ERR_PROC_FAILED);
    CHECK_EQUAL(statuses[1].MPI_ERROR, MPI_SUCCESS);
}

/* Long messages whose other side dies: before it has matched them, and while they move. */
static void long_messages(void)
{
    int last = size - 1;
    char *bytes = malloc(LONG), *more = malloc(LONG);
    MPI_Datatype gaps;
    MPI_Type_vector(LONG / 64, 32, 64, MPI_BYTE, &gaps);
    MPI_Type_commit(&gaps);
    memset(bytes, rank, LONG);
    if (rank == last) {
        MPI_Request request;
        for (int to = 0; to < last; to++) {
            SUCCEEDS(MPI_Isend(bytes, LONG, MPI_BYTE, to, 1, comm, &request));
            SUCCEEDS(MPI_Isend(bytes, 1, gaps, to, 2, comm, &request));
            SUCCEEDS(MPI_Irecv(bytes, LONG, MPI_BYTE, to, 3, comm, &request));
        }
        sleep_ms(20);
        die();
    }
    /* Some of it may come; what does not is an error, and nothing hangs. */
    MPI_Request requests[4];
    MPI_Status statuses[4];
    SUCCEEDS(MPI_Irecv(more, LONG, MPI_BYTE, last, 1, comm, &requests[0]));
    int codes[3] = {class_of(MPI_Send(bytes, LONG, MPI_BYTE, last, 3, comm)), class_of(MPI_Send(bytes, LONG, MPI_BYTE, last, 4, comm)),
                    class_of(MPI_Wait(&requests[0], statuses))};
    CHECK_EQUAL(codes[1], MPIX_ERR_PROC_FAILED);
    for (int index = 0; index < 3; index++)
        CHECK(codes[index] == MPI_SUCCESS || codes[index] == MPIX_ERR_PROC_FAILED, "class %#x", codes[index]);
    int code = class_of(MPI_Recv(more, 1, gaps, last, 2, comm, statuses));
    CHECK(code == MPI_SUCCESS || code == MPIX_ERR_PROC_FAILED, "class %#x", code);
    FAILS(MPI_Recv(more, LONG, MPI_BYTE, last, 6, comm, statuses), MPIX_ERR_PROC_FAILED);
    MPI_Type_free(&gaps);
    free(bytes);
    free(more);
}

static void any_source(void)
{
    int last = size - 1, value = 5, flag = -1;
    MPI_Request request;
    MPI_Status status;
    if (rank == last)
        die();
    if (rank == 0) {
        SUCCEEDS(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &request));
        FAILS(MPI_Wait(&request, &status), MPIX_ERR_PROC_FAILED_PENDING);
        CHECK(request != MPI_REQUEST_NULL, "the request goes on");
        FAILS(MPI_Test(&request, &flag, &status), MPIX_ERR_PROC_FAILED_PENDING);
        FAILS(MPI_Waitall(1, &request, &status), MPI_ERR_IN_STATUS);
        CHECK_EQUAL(class_of(status.MPI_ERROR), MPIX_ERR_PROC_FAILED_PENDING);
        CHECK(request != MPI_REQUEST_NULL, "the request still goes on");
        FAILS(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 2, comm, &status), MPIX_ERR_PROC_FAILED);
        FAILS(MPI_Probe(MPI_ANY_SOURCE, 2, comm, &status), MPIX_ERR_PROC_FAILED);
        acknowledge(comm);
        SUCCEEDS(MPI_Test(&request, &flag, &status));
        CHECK_EQUAL(flag, 0);
        for (int from = 1; from < last; from++)
            SUCCEEDS(MPI_Send(&value, 1, MPI_INT, from, 3, comm));
        SUCCEEDS(MPI_Wait(&request, &status));
        CHECK_EQUAL(value, status.MPI_SOURCE);
        for (int from = 2; from < last; from++)
            SUCCEEDS(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &status));
        MPI_Group group;
        SUCCEEDS(MPIX_Comm_failure_get_acked(comm, &group));
        int count, zero = 0, in_comm;
        MPI_Group whole;
        MPI_Comm_group(comm, &whole);
        MPI_Group_size(group, &count);
        CHECK_EQUAL(count, 1);
        MPI_Group_translate_ranks(group, 1, &zero, whole, &in_comm);
        CHECK_EQUAL(in_comm, last);
        MPI_Group_free(&group);
        MPI_Group_free(&whole);
    } else {
        SUCCEEDS(MPI_Recv(&value, 1, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Send(&rank, 1, MPI_INT, 0, 1, comm));
    }
}

/* Every collective fails at all who live, or ends well; none hangs. */
static void collectives(void)
{
    int last = size - 1, sum, code, all = 1;
    double *values = calloc(size * 30000, sizeof *values), *more = calloc(size * 30000, sizeof *more);
    MPI_Request request;
    for (int round = 0; round < 3; round++)
        SUCCEEDS(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    SUCCEEDS(MPIX_Comm_agree(comm, &all));
    if (rank == last)
        die();
    code = class_of(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQUAL(code, MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Barrier(comm), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Bcast(values, 30000, MPI_DOUBLE, last, comm), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Alltoall(values, 30000, MPI_DOUBLE, more, 30000, MPI_DOUBLE, comm), MPIX_ERR_PROC_FAILED);
    code = class_of(MPI_Iallreduce(values, more, 30000, MPI_DOUBLE, MPI_SUM, comm, &request));
    if (code == MPI_SUCCESS)
        code = class_of(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQUAL(code, MPIX_ERR_PROC_FAILED);
    MPI_Comm other;
    FAILS(MPI_Comm_dup(comm, &other), MPIX_ERR_PROC_FAILED);
    free(values);
    free(more);
}

static void die_now(int signal)
{
    (void)signal;
    kill(getpid(), SIGKILL);
}

static long piece_of(int from, int to, int turn, int index) { return (long)from * 1000003 + (long)to * 10007 + (long)turn * 101 + index; }

/* Long collectives, until one of the ranks dies in the middle of something. What says that it succeeded has the right result, although those
 * whose call has failed change their buffers at once. */
static void long_collectives(void)
{
    enum { COUNT = 40000 };
    int last = size - 1, code = MPI_SUCCESS;
    size_t all = (size_t)size * COUNT;
    long *in = malloc(all * sizeof *in), *out = malloc(all * sizeof *out);
    long ranks = (long)size * (size - 1) / 2;
    if (rank == last) {
        struct itimerval soon = {{0, 0}, {0, 20000}};
        signal(SIGALRM, die_now);
        setitimer(ITIMER_REAL, &soon, NULL);
    }
    for (int turn = 0; code == MPI_SUCCESS; turn++) {
        int which = turn % 5;
        for (int to = 0; to < size; to++)
            for (int index = 0; index < COUNT; index++)
                in[(size_t)to * COUNT + (size_t)index] = which == 4 && rank != 0 ? -1 : piece_of(rank, to, turn, index);
        memset(out, 0, all * sizeof *out);
        switch (which) {
        case 0: code = MPI_Allgather(in, COUNT, MPI_LONG, out, COUNT, MPI_LONG, comm); break;
        case 1: code = MPI_Alltoall(in, COUNT, MPI_LONG, out, COUNT, MPI_LONG, comm); break;
        case 2: code = MPI_Allreduce(in, out, COUNT, MPI_LONG, MPI_SUM, comm); break;
        case 3: code = MPI_Reduce_scatter_block(in, out, COUNT, MPI_LONG, MPI_SUM, comm); break;
        default: code = MPI_Bcast(in, COUNT, MPI_LONG, 0, comm);
        }
        if (code != MPI_SUCCESS) {
            memset(in, 0xA5, all * sizeof *in);
            memset(out, 0xA5, all * sizeof *out);
            break;
        }
        for (int index = 0; index < COUNT; index++) {
            long sum = ranks * 1000003 + size * (piece_of(0, which == 3 ? rank : 0, turn, index));
            if (which == 2 || which == 3)
                CHECK(out[index] == sum, "reduction in turn %d, index %d", turn, index);
            else if (which == 4)
                CHECK(in[index] == piece_of(0, 0, turn, index), "broadcast in turn %d, index %d", turn, index);
            else
                for (int from = 0; from < size; from++)
                    CHECK(out[from * COUNT + index] == piece_of(from, which == 1 ? rank : 0, turn, index), "turn %d, from %d, index %d", turn, from, index);
        }
    }
    CHECK_EQUAL(class_of(code), MPIX_ERR_PROC_FAILED);
    free(in);
    free(out);
}

/* As the case before the last, where the others are within the collective already. */
static void collectives_blocked(void)
{
    int last = size - 1, sum;
    double *values = calloc(size * 30000, sizeof *values), *more = calloc(size * 30000, sizeof *more);
    MPI_Request request;
    if (rank == last) {
        sleep_ms(100);
        die();
    }
    if (rank % 2 == 0) {
        SUCCEEDS(MPI_Iallreduce(values, more, 30000, MPI_DOUBLE, MPI_SUM, comm, &request));
        FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    } else {
        SUCCEEDS(MPI_Iallreduce(values, more, 30000, MPI_DOUBLE, MPI_SUM, comm, &request));
        FAILS(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm), MPIX_ERR_PROC_FAILED);
        FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    }
    free(values);
    free(more);
}

/* Somebody else fails first and revokes; nobody has died that the others wait for. */
static void revocation(void)
{
    int value = 3, flag, next = (rank + 1) % size;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Comm other;
    SUCCEEDS(MPI_Comm_dup(comm, &other));
    SUCCEEDS(MPIX_Comm_is_revoked(comm, &flag));
    CHECK_EQUAL(flag, 0);
    if (rank == size - 1) {
        sleep_ms(50);
        SUCCEEDS(MPIX_Comm_revoke(comm));
        SUCCEEDS(MPIX_Comm_revoke(comm));
    } else if (rank == 0) {
        SUCCEEDS(MPI_Irecv(&value, 1, MPI_INT, size - 1, 1, comm, &requests[0]));
        SUCCEEDS(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &requests[1]));
        FAILS(MPI_Wait(&requests[0], &status), MPIX_ERR_REVOKED);
        FAILS(MPI_Wait(&requests[1], &status), MPIX_ERR_REVOKED);
    } else if (rank == 1) {
        FAILS(MPI_Recv(&value, 1, MPI_INT, size - 1, 1, comm, &status), MPIX_ERR_REVOKED);
    } else if (rank == 2) {
        char *bytes = malloc(LONG);
        FAILS(MPI_Send(bytes, LONG, MPI_BYTE, 0, 4, comm), MPIX_ERR_REVOKED);
        free(bytes);
    } else {
        FAILS(MPI_Barrier(comm), MPIX_ERR_REVOKED);
    }
    do
        SUCCEEDS(MPIX_Comm_is_revoked(comm, &flag));
    while (!flag);
    FAILS(MPI_Send(&value, 1, MPI_INT, next, 1, comm), MPIX_ERR_REVOKED);
    FAILS(MPI_Recv(&value, 1, MPI_INT, next, 1, comm, &status), MPIX_ERR_REVOKED);
    FAILS(MPI_Probe(MPI_ANY_SOURCE, 1, comm, &status), MPIX_ERR_REVOKED);
    FAILS(MPI_Isend(&value, 1, MPI_INT, next, 1, comm, &requests[0]), MPIX_ERR_REVOKED);
    FAILS(MPI_Allreduce(&rank, &value, 1, MPI_INT, MPI_SUM, comm), MPIX_ERR_REVOKED);
    FAILS(MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 1, comm), MPIX_ERR_REVOKED);
    use(other);
    flag = 1 << rank | 1;
    SUCCEEDS(MPIX_Comm_agree(comm, &flag));
    CHECK_EQUAL(flag, 1);
    MPI_Comm whole = shrink(comm, size);
    MPI_Comm_free(&whole);
    MPI_Comm_free(&other);
}

/* One dies while the others agree, and one before. */
static void agreement(void)
{
    int flag, acknowledged = -1;
    if (rank == size - 1)
        die();
    await_failed(comm, 1);
    flag = ~(1 << rank);
    int all = -1;
    for (int other = 0; other < size - 1; other++)
        all &= ~(1 << other);
    FAILS(MPIX_Comm_agree(comm, &flag), MPIX_ERR_PROC_FAILED);
    CHECK_EQUAL(flag, all);
    /* Unless all have acknowledged it, it fails at all. */
    if (rank != 0)
        acknowledge(comm);
    flag = 6;
    FAILS(MPIX_Comm_agree(comm, &flag), MPIX_ERR_PROC_FAILED);
    CHECK_EQUAL(flag, 6);
    acknowledge(comm);
    flag = 3 | rank << 2;
    SUCCEEDS(MPIX_Comm_agree(comm, &flag));
    CHECK_EQUAL(flag & 3, 3);
    SUCCEEDS(MPIX_Comm_ack_failed(comm, 0, &acknowledged));
    CHECK_EQUAL(acknowledged, 1);
    /* Another one dies inside. */
    if (rank == size - 2) {
        sleep_ms(50);
        die();
    }
    flag = 10;
    FAILS(MPIX_Comm_agree(comm, &flag), MPIX_ERR_PROC_FAILED);
    CHECK_EQUAL(flag, 10);
    MPI_Comm small = shrink(comm, size - 2);
    MPI_Comm_free(&small);
}

/* All but half of them die one by one, each in the middle of something else. */
static void one_by_one(void)
{
    MPI_Comm now = comm;
    int left = size, own, sum, code, all = 1;
    for (int round = 0; round < size / 2; round++) {
        MPI_Comm_rank(now, &own);
        if (own == left / 2) {
            if (round % 2)
                sleep_ms(20);
            die();
        }
        code = MPI_SUCCESS;
        for (int turn = 0; turn < 1000 && code == MPI_SUCCESS; turn++) {
            code = class_of(MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, now));
        }
        CHECK_EQUAL(code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_REVOKED, 1);
        SUCCEEDS(MPIX_Comm_revoke(now));
        MPI_Comm next = shrink(now, --left);
        /* Nobody dies before the others have done what they do there. */
        SUCCEEDS(MPIX_Comm_agree(next, &all));
        if (now != comm)
            MPI_Comm_free(&now);
        now = next;
    }
    if (now != comm)
        MPI_Comm_free(&now);
}

/* The nonblocking forms, and a death in a shrink. */
static void nonblocking(void)
{
    int flag = 5 | rank << 3, done = 0, other = 12;
    MPI_Request requests[2];
    MPI_Comm small = MPI_COMM_NULL;
    SUCCEEDS(MPIX_Comm_iagree(comm, &flag, &requests[0]));
    SUCCEEDS(MPIX_Comm_iagree(comm, &other, &requests[1]));
    SUCCEEDS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_EQUAL(flag & 7, 5);
    CHECK_EQUAL(other, 12);
    if (rank == size - 1)
        die();
    SUCCEEDS(MPIX_Comm_ishrink(comm, &small, &requests[0]));
    while (!done)
        SUCCEEDS(MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE));
    MPI_Comm_set_errhandler(small, MPI_ERRORS_RETURN);
    use(small);
    flag = 7;
    SUCCEEDS(MPIX_Comm_iagree(small, &flag, &requests[0]));
    SUCCEEDS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK_EQUAL(flag, 7);
    flag = 9;
    SUCCEEDS(MPIX_Comm_iagree(comm, &flag, &requests[0]));
    FAILS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    CHECK_EQUAL(flag, 9);
    MPI_Comm_free(&small);
}

/* An intercommunicator of which a member of one side dies. */
static void between_groups(void)
{
    MPI_Comm half, inter, small;
    int side = rank % 2, local, remote, value = 1;
    SUCCEEDS(MPI_Comm_split(comm, side, rank, &half));
    SUCCEEDS(MPI_Intercomm_create(half, 0, comm, 1 - side, 1, &inter));
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    if (rank == size - 1)
        die();
    int class = class_of(MPI_Barrier(inter));
    CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED, "class %#x", class);
    SUCCEEDS(MPIX_Comm_revoke(inter));
    SUCCEEDS(MPIX_Comm_shrink(inter, &small));
    MPI_Comm_set_errhandler(small, MPI_ERRORS_RETURN);
    MPI_Comm_size(small, &local);
    MPI_Comm_remote_size(small, &remote);
    CHECK_EQUAL(local + remote, size - 1);
    SUCCEEDS(MPI_Barrier(small));
    int sum = -1;
    SUCCEEDS(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, small));
    CHECK_EQUAL(sum, remote);
    value = 6;
    SUCCEEDS(MPIX_Comm_agree(small, &value));
    CHECK_EQUAL(value, 6);
    MPI_Comm_free(&small);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* A member of windows and files dies, with a lock held. */
static void windows_and_files(void)
{
    int last = size - 1, code, all = 1, value = rank;
    int *memory, *created = calloc(4, sizeof *created);
    char name[256];
    MPI_Win allocated, window;
    MPI_File file;
    SUCCEEDS(MPI_Win_allocate(4 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, comm, &memory, &allocated));
    SUCCEEDS(MPI_Win_create(created, 4 * sizeof *created, sizeof *created, MPI_INFO_NULL, comm, &window));
    MPI_Win_set_errhandler(allocated, MPI_ERRORS_RETURN);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    SUCCEEDS(MPI_Win_fence(0, allocated));
    SUCCEEDS(MPI_Win_fence(0, window));
    snprintf(name, sizeof name, "%s/ulfm.%ld.data", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (long)getpid());
    SUCCEEDS(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, comm));
    SUCCEEDS(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    SUCCEEDS(MPIX_Comm_agree(comm, &all));
    if (rank == last) {
        SUCCEEDS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, allocated));
        SUCCEEDS(MPI_Send(&value, 1, MPI_INT, 0, 1, comm));
        unlink(name);
        die();
    }
    if (rank == 0)
        SUCCEEDS(MPI_Recv(&value, 1, MPI_INT, last, 1, comm, MPI_STATUS_IGNORE));
    FAILS(MPI_Win_fence(0, window), MPIX_ERR_PROC_FAILED);
    /* The lock that the dead one has may be another host's, which then knows that it is free. */
    code = class_of(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, allocated));
    CHECK(code == MPI_SUCCESS || code == MPIX_ERR_PROC_FAILED, "class %#x", code);
    FAILS(MPI_File_write_all(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    MPI_Win other;
    FAILS(MPI_Win_allocate(4, 1, MPI_INFO_NULL, comm, &memory, &other), MPIX_ERR_PROC_FAILED);
    /* Those who live make a communicator of their own without shrinking, and requests that are kept fail each time. */
    MPI_Group whole, living;
    MPI_Comm some;
    MPI_Request request;
    MPI_Comm_group(comm, &whole);
    MPI_Group_excl(whole, 1, &last, &living);
    SUCCEEDS(MPI_Comm_create_group(comm, living, 7, &some));
    MPI_Comm_set_errhandler(some, MPI_ERRORS_RETURN);
    use(some);
    SUCCEEDS(MPI_Recv_init(&value, 1, MPI_INT, last, 5, comm, &request));
    for (int round = 0; round < 2; round++) {
        SUCCEEDS(MPI_Start(&request));
        FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
        CHECK(request != MPI_REQUEST_NULL, "a persistent request stays");
    }
    SUCCEEDS(MPI_Request_free(&request));
    MPI_Group_free(&whole);
    MPI_Group_free(&living);
    MPI_Comm_free(&some);
}

static void die_by_alarm(int signal)
{
    (void)signal;
    die();
}

/* A member dies while others' hosts answer its requests to windows, and while it waits for a lock; they answer the others on. */
static void window_requests(void)
{
    enum { COUNT = 1 << 18 };
    int last = size - 1, *memory, *got = malloc(COUNT * sizeof *got), value;
    MPI_Win win;
    SUCCEEDS(MPI_Win_allocate(COUNT * sizeof *memory, sizeof *memory, MPI_INFO_NULL, comm, &memory, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int index = 0; index < COUNT; index++)
        memory[index] = rank + index;
    SUCCEEDS(MPI_Win_fence(0, win));
    SUCCEEDS(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    if (rank == last) {
        signal(SIGALRM, die_by_alarm);
        ualarm(100000, 0);
        SUCCEEDS(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
        for (int target = 0;; target = (target + 1) % last)
            SUCCEEDS(MPI_Get(got, COUNT, MPI_INT, target, 0, COUNT, MPI_INT, win));
    }
    FAILS(MPI_Recv(&value, 1, MPI_INT, last, 1, comm, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    SUCCEEDS(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int target = 0; target < last; target++) {
        SUCCEEDS(MPI_Get(got, COUNT, MPI_INT, target, 0, COUNT, MPI_INT, win));
        SUCCEEDS(MPI_Win_flush(target, win));
        CHECK_EQUAL(got[COUNT - 1], target + COUNT - 1);
    }
    free(got);
}

/* Nobody dies. */
static void nobody(void)
{
    int flag = 12 | rank, count = -1;
    use(comm);
    SUCCEEDS(MPIX_Comm_agree(comm, &flag));
    CHECK_EQUAL(flag & 12, 12);
    CHECK_EQUAL(count_failed(comm), 0);
    SUCCEEDS(MPIX_Comm_ack_failed(comm, size, &count));
    CHECK_EQUAL(count, 0);
    MPI_Comm whole = shrink(comm, size);
    MPI_Comm_free(&whole);
    SUCCEEDS(MPIX_Comm_shrink(MPI_COMM_SELF, &whole));
    MPI_Comm_free(&whole);
    FAILS(MPIX_Comm_agree(comm, NULL), MPI_ERR_ARG);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    FAILS(MPIX_Comm_agree(MPI_COMM_NULL, &flag), MPI_ERR_COMM);
}

/* All but rank 0 die at once. */
static void last_one(void)
{
    int value;
    if (rank != 0)
        die();
    FAILS(MPI_Recv(&value, 1, MPI_INT, size - 1, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    await_failed(comm, size - 1);
    MPI_Comm alone = shrink(comm, 1);
    MPI_Comm_free(&alone);
}

static void everybody(void)
{
    die();
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"point-to-point", point_to_point}, {"long", long_messages}, {"any-source", any_source}, {"collectives", collectives},
    {"long-collectives", long_collectives}, {"blocked", collectives_blocked}, {"revoke", revocation}, {"agree", agreement}, {"one-by-one", one_by_one},
    {"nonblocking", nonblocking}, {"inter", between_groups}, {"nobody", nobody}, {"windows", windows_and_files}, {"requests", window_requests}, {"last", last_one}, {"everybody", everybody},
};

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    rank = check_rank;
    size = check_size;
    dies_by_exit = argc > 2 && strcmp(argv[2], "exit") == 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int ran = 0;
    for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
        if (argc < 2 || strcmp(argv[1], cases[index].name) != 0)
            continue;
        /* The agreement ends after the last one has its communicator, whoever dies then. */
        int all = 1;
        SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        SUCCEEDS(MPIX_Comm_agree(MPI_COMM_WORLD, &all));
        cases[index].run();
        MPI_Comm_free(&comm);
        ran = 1;
    }
    CHECK(ran, "no case has the name %s", argc > 1 ? argv[1] : "(none)");
    if (rank == 0) {
        printf("ulfm: ok\n");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
