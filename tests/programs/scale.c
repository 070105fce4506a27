/* How much memory and how many connections a rank needs: allreduces, barriers and a ring over all ranks, and then what each rank has. Rank 0 prints it, and
 * no rank may have more connections than argument 1. Argument 2 is when the job was started, in seconds. */
#include "check.h"

#include <sys/socket.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A line of /proc/self/smaps_rollup in KiB. */
static long rollup(const char *name)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kib = -1;
    size_t length = strlen(name);
    while (file && kib < 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, name, length))
            kib = atol(line + length);
    if (file)
        fclose(file);
    return kib;
}

/* The connections of this process to others over TCP. */
static long connections(void)
{
    long count = 0;
    for (int descriptor = 0; descriptor < 4096; descriptor++) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof peer;
        if (!getpeername(descriptor, (struct sockaddr *)&peer, &length) && (peer.ss_family == AF_INET || peer.ss_family == AF_INET6))
            count++;
    }
    return count;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    double began = argc > 2 ? seconds() - atof(argv[2]) : 0;
    int size = check_size, rank = check_rank;
    enum { ROUNDS = 5, MANY = 10000 };
    static long many[MANY], sums[MANY];
    for (int round = 0; round < ROUNDS; round++) {
        long one = rank + round, sum;
        MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        CHECK_EQUAL(sum, (long)size * (size - 1) / 2 + (long)size * round);
        for (int index = 0; index < MANY; index++)
            many[index] = rank + index;
        MPI_Allreduce(many, sums, MANY, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        CHECK_EQUAL(sums[MANY - 1], (long)size * (size - 1) / 2 + (long)size * (MANY - 1));
        MPI_Barrier(MPI_COMM_WORLD);
        int sent = rank + round, token = -1;
        MPI_Sendrecv(&sent, 1, MPI_INT, (rank + 1) % size, round, &token, 1, MPI_INT, (rank + size - 1) % size, round, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        CHECK_EQUAL(token, (rank + size - 1) % size + round);
    }
    long own[4] = {connections(), rollup("Pss:"), rollup("Private_Dirty:"), (long)(1000 * began)}, most[4], all[4];
    MPI_Reduce(own, most, 4, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(own, all, 4, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("ranks %d, connections per rank: %.2f, at most %ld; ", size, (double)all[0] / size, most[0]);
        printf("PSS per rank: %.2f MiB, at most %.2f; private and written: %.2f MiB; ", (double)all[1] / size / 1024, (double)most[1] / 1024,
               (double)all[2] / size / 1024);
        printf("start until the last rank has left MPI_Init: %.2f s\n", (double)most[3] / 1000);
        if (argc > 1)
            CHECK(0 < most[0] && most[0] <= atol(argv[1]), "a rank has %ld connections", most[0]);
    }
    return check_end("scale");
}
