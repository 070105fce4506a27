/* Matching between two ranks.
 *
 * Half round trip of 8 bytes with nothing else there; with 10,000 other receives posted, exact ones and with one in ten a wildcard that does not fit; with
 * 10,000 unexpected messages queued, received by exact source and by MPI_ANY_SOURCE.
 *
 * A flood: unexpected messages of 8 bytes, received in the reverse order of their tags. 10,000 of them, and 100,000 where those would not take too long. */
#include "bench.h"

enum { depth = 10000, most = 100000, end_tag = 1000000 };

static int from_any;

static void round_trip(void *context)
{
    uint64_t *data = context;
    int other = 1 - rank, source = from_any ? MPI_ANY_SOURCE : other;
    if (rank == 0)
        MPI_Send(data, 8, MPI_BYTE, other, 7, MPI_COMM_WORLD);
    MPI_Recv(data, 8, MPI_BYTE, source, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(data, 8, MPI_BYTE, other, 7, MPI_COMM_WORLD);
}

static void report(const char *name)
{
    uint64_t data = 0;
    result(name, 8, seconds_per_call(round_trip, &data) / 2 * 1e6, "us");
}

/* One in ten posted receives is a wildcard: of the source, with a tag that is not the exchange's; or of the tag, from this rank itself. */
static void with_posted(const char *name, int wildcards, uint64_t *data, MPI_Request *requests)
{
    int other = 1 - rank;
    uint64_t value = 0;
    for (int index = 0; index < depth; index++) {
        int from = wildcards && index % 20 == 0 ? MPI_ANY_SOURCE : wildcards && index % 20 == 10 ? rank : other;
        int tag = wildcards && index % 20 == 10 ? MPI_ANY_TAG : 100 + index;
        MPI_Irecv(&data[index], 8, MPI_BYTE, from, tag, MPI_COMM_WORLD, &requests[index]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    report(name);
    for (int index = 0; index < depth; index++)
        MPI_Send(&value, 8, MPI_BYTE, wildcards && index % 20 == 10 ? rank : other, 100 + index, MPI_COMM_WORLD);
    MPI_Waitall(depth, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void with_unexpected(uint64_t *data, MPI_Request *requests)
{
    int other = 1 - rank;
    uint64_t value;
    for (int index = 0; index < depth; index++)
        MPI_Isend(&data[index], 8, MPI_BYTE, other, 100 + index, MPI_COMM_WORLD, &requests[index]);
    MPI_Barrier(MPI_COMM_WORLD);
    report("match-unexpected");
    from_any = 1;
    report("match-unexpected-any-source");
    from_any = 0;
    for (int index = 0; index < depth; index++)
        MPI_Recv(&value, 8, MPI_BYTE, other, 100 + index, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(depth, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* What this process has in memory, in bytes. */
static double resident(void)
{
    double kib = 0;
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %lf", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib * 1024;
}

/* Seconds of the whole, known to both ranks. */
static double flood(int count, uint64_t *data, MPI_Request *requests)
{
    double times[3] = {0, 0, 0}, start;
    /* It is not done again: a second one would find the memory of the first. */
    disturbed();
    start = now();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        start = now();
        for (int index = 0; index < count; index++)
            MPI_Isend(&data[index], 8, MPI_BYTE, 1, index, MPI_COMM_WORLD, &requests[index]);
        MPI_Send(&start, 1, MPI_DOUBLE, 1, end_tag, MPI_COMM_WORLD);
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    } else {
        /* The last message can be received only when all before it have been looked at. Both ranks read one clock. */
        double before = resident();
        MPI_Recv(&start, 1, MPI_DOUBLE, 0, end_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double queued = now();
        times[0] = queued - start;
        times[2] = resident() - before;
        queued = now();
        for (int index = count - 1; index >= 0; index--)
            MPI_Recv(&data[index], 8, MPI_BYTE, 0, index, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        times[1] = now() - queued;
    }
    MPI_Bcast(times, 3, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    char name[64];
    snprintf(name, sizeof name, "flood-%d-queue", count);
    result(name, 8, times[0] / count * 1e9, "ns");
    snprintf(name, sizeof name, "flood-%d-drain", count);
    result(name, 8, times[1] / count * 1e9, "ns");
    snprintf(name, sizeof name, "flood-%d-memory", count);
    result(name, 8, times[2] / 1048576, "MiB");
    return times[0] + times[1];
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    uint64_t *data = (uint64_t *)memory(most * sizeof *data);
    MPI_Request *requests = malloc(most * sizeof *requests);
    report("match-none");
    with_posted("match-posted", 0, data, requests);
    with_posted("match-posted-wildcards", 1, data, requests);
    with_unexpected(data, requests);
    /* A search in a list takes a time that grows with the square of the number. */
    if (flood(depth, data, requests) * 100 < 200 * budget || budget >= 1)
        flood(most, data, requests);
    else
        note("flood-100000", "would take too long, judged by 10,000");
    MPI_Finalize();
    return 0;
}
