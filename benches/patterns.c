/* What programs do besides one message at a time, between two ranks: many messages each way at once, completed all together or one by one; messages
 * that are probed first, and received by what the probe has told; persistent requests; exchanges in memory that is allocated anew; collectives whose
 * blocks differ in length, or that are waited for by their requests; and collectives whose lengths differ from call to call, as in most programs. */
#include "bench.h"

enum { largest = 65536, many = 32 };

static unsigned char *out, *in;
static MPI_Request requests[2 * many];

static void start_many(int bytes)
{
    int other = 1 - rank;
    for (int index = 0; index < many; index++)
        MPI_Irecv(in + index * bytes, bytes, MPI_BYTE, other, index, MPI_COMM_WORLD, &requests[index]);
    for (int index = 0; index < many; index++)
        MPI_Isend(out + index * bytes, bytes, MPI_BYTE, other, index, MPI_COMM_WORLD, &requests[many + index]);
}

static void all_together(void *context)
{
    start_many(*(const int *)context);
    MPI_Waitall(2 * many, requests, MPI_STATUSES_IGNORE);
}

static void one_by_one(void *context)
{
    int completed;
    start_many(*(const int *)context);
    for (int count = 0; count < 2 * many; count++)
        MPI_Waitany(2 * many, requests, &completed, MPI_STATUS_IGNORE);
}

static void receive_probed(void)
{
    MPI_Status status;
    int bytes;
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    MPI_Recv(in, bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_matched(void)
{
    MPI_Status status;
    MPI_Message message;
    int bytes;
    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    MPI_Mrecv(in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
}

static void to_and_fro(int bytes, void (*receive)(void))
{
    if (rank == 1)
        receive();
    MPI_Send(out, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
    if (rank == 0)
        receive();
}

static void probed(void *context) { to_and_fro(*(const int *)context, receive_probed); }

static void matched(void *context) { to_and_fro(*(const int *)context, receive_matched); }

static void persistent(void *context)
{
    (void)context;
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* As a program does that makes what it sends and gives away what it has received. */
static void exchange_anew(void *context)
{
    int bytes = *(const int *)context, other = 1 - rank;
    unsigned char *made = malloc((size_t)bytes), *got = malloc((size_t)bytes);
    if (!made || !got)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(made, bytes, (size_t)bytes);
    MPI_Sendrecv(made, bytes, MPI_BYTE, other, 0, got, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(got);
    free(made);
}

/* Of 50 numbers; the ranks take turns as the root. */
static void ibcast(void *context)
{
    int *root = context;
    *root = 1 - *root;
    MPI_Ibcast(in, 50, MPI_DOUBLE, *root, MPI_COMM_WORLD, requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
}

static void iallreduce(void *context)
{
    (void)context;
    MPI_Iallreduce(out, in, 50, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
}

struct blocks {
    int bytes, counts[2], places[2];
};

static void alltoallv(void *context)
{
    struct blocks *all = context;
    MPI_Alltoallv(out, all->counts, all->places, MPI_BYTE, in, all->counts, all->places, MPI_BYTE, MPI_COMM_WORLD);
}

static void allgatherv(void *context)
{
    struct blocks *all = context;
    MPI_Allgatherv(out, all->bytes, MPI_BYTE, in, all->counts, all->places, MPI_BYTE, MPI_COMM_WORLD);
}

static void gatherv(void *context)
{
    struct blocks *all = context;
    MPI_Gatherv(out, all->bytes, MPI_BYTE, in, all->counts, all->places, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatterv(void *context)
{
    struct blocks *all = context;
    MPI_Scatterv(out, all->counts, all->places, MPI_BYTE, in, all->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/* Collectives of 1 to 100 numbers, another length each time, of the ranks in turn where there is a root. */
static int changing_count, changing_root;

static void change(void)
{
    changing_count = changing_count % 100 + 1;
    changing_root = 1 - changing_root;
}

static void bcast_changing(void *context)
{
    (void)context;
    change();
    MPI_Bcast(in, changing_count, MPI_DOUBLE, changing_root, MPI_COMM_WORLD);
}

static void allreduce_changing(void *context)
{
    (void)context;
    change();
    MPI_Allreduce(out, in, changing_count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoallv_changing(void *context)
{
    (void)context;
    change();
    int counts[2] = {changing_count, changing_count}, places[2] = {0, changing_count};
    MPI_Alltoallv(out, counts, places, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static int sizes[] = {8, 1024, 16384};
    bench_start(&argc, &argv);
    out = memory(many * 16384 + 2 * largest);
    in = memory(many * 16384 + 2 * largest);
    for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++) {
        int bytes = sizes[which];
        result("many-exchanged", bytes, seconds_per_call(all_together, &bytes) * 1e6, "us");
        result("many-exchanged-one-by-one", bytes, seconds_per_call(one_by_one, &bytes) * 1e6, "us");
        result("probed", bytes, seconds_per_call(probed, &bytes) * 5e5, "us");
        result("probed-matched", bytes, seconds_per_call(matched, &bytes) * 5e5, "us");
        MPI_Recv_init(in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Send_init(out, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
        result("exchange-persistent", bytes, seconds_per_call(persistent, NULL) * 1e6, "us");
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
    static const int lengths[] = {8, 1024, 16384, largest};
    for (size_t which = 0; which < sizeof lengths / sizeof *lengths; which++) {
        int bytes = lengths[which];
        struct blocks all = {bytes, {bytes, bytes}, {0, bytes}};
        result("alltoallv-2-ranks", bytes, seconds_per_call(alltoallv, &all) * 1e6, "us");
        result("allgatherv-2-ranks", bytes, seconds_per_call(allgatherv, &all) * 1e6, "us");
        result("gatherv-2-ranks", bytes, seconds_per_call(gatherv, &all) * 1e6, "us");
        result("scatterv-2-ranks", bytes, seconds_per_call(scatterv, &all) * 1e6, "us");
    }
    static const int anew[] = {16384, 262144, 1 << 20};
    for (size_t which = 0; which < sizeof anew / sizeof *anew; which++) {
        int bytes = anew[which];
        result("exchange-anew", bytes, seconds_per_call(exchange_anew, &bytes) * 1e6, "us");
    }
    memset(out, 0, 1600);
    int mean = 404, root = 0;
    result("ibcast-2-ranks", 400, seconds_per_call(ibcast, &root) * 1e6, "us");
    result("iallreduce-2-ranks", 400, seconds_per_call(iallreduce, NULL) * 1e6, "us");
    result("bcast-changing-2-ranks", mean, seconds_per_call(bcast_changing, NULL) * 1e6, "us");
    result("allreduce-changing-2-ranks", mean, seconds_per_call(allreduce_changing, NULL) * 1e6, "us");
    result("alltoallv-changing-2-ranks", mean, seconds_per_call(alltoallv_changing, NULL) * 1e6, "us");
    MPI_Finalize();
    return 0;
}
