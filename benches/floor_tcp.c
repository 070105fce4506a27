/* What the machine's TCP can do without MPI: two threads on two cores and one connection, both of which spin on reads that do not block. The connection is
 * over the loopback interface, or, with the arguments NETWORK ADDRESS, to a socket in another network namespace, which is that file and has that address.
 * The half round trip of 8 bytes, and the bandwidth of one message at a time, from before its first byte is written until its last is read.
 * Prints results in the form of bench.h. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { parts = 5, largest = 64 << 20 };

static double budget = 0.05;
static int cores[2], ends[2];
static unsigned char *data[2];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Moves all bytes, spinning. */
static void move(int side, int writes, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t count = writes ? send(ends[side], data[side] + done, bytes - done, 0) : recv(ends[side], data[side] + done, bytes - done, 0);
        if (count > 0)
            done += (size_t)count;
        else if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
            fail("the connection");
    }
}

struct task {
    size_t bytes, back;
    int rounds;
};

static void *answer(void *context)
{
    struct task *task = context;
    /* One round more, before the clock runs. */
    for (int round = 0; round <= task->rounds; round++) {
        move(1, 0, task->bytes);
        move(1, 1, task->back);
    }
    return NULL;
}

/* Seconds for one message there and `back` bytes back. */
static double seconds(size_t bytes, size_t back, int rounds)
{
    struct task task = {bytes, back, rounds};
    pthread_t other;
    pthread_attr_t attributes;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cores[1], &set);
    /* A thread that began on this one's core would first have to be given it. */
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    if (pthread_create(&other, &attributes, answer, &task))
        fail("a thread");
    double start = 0;
    for (int round = 0; round <= rounds; round++) {
        if (round == 1)
            start = now();
        move(0, 1, bytes);
        move(0, 0, back);
    }
    double taken = (now() - start) / rounds;
    pthread_join(other, NULL);
    pthread_attr_destroy(&attributes);
    return taken;
}

static double median_seconds(size_t bytes, size_t back)
{
    double values[parts], once = seconds(bytes, back, 3);
    int rounds = 3 + (int)(budget / parts / once);
    for (int part = 0; part < parts; part++)
        values[part] = seconds(bytes, back, rounds);
    qsort(values, parts, sizeof *values, compare);
    return values[parts / 2];
}

static void enter(int network)
{
    if (network < 0 || setns(network, CLONE_NEWNET))
        fail("the other network");
}

/* A socket stays in the network that it was made in, whichever thread uses it. */
static void join_ends(const char *network, const char *there)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = there ? inet_addr(there) : htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int here = network ? open("/proc/self/ns/net", O_RDONLY) : -1;
    if (network)
        enter(open(network, O_RDONLY));
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (network)
        enter(here);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) || getsockname(listener, (struct sockaddr *)&address, &length))
        fail("a listening socket");
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (ends[0] < 0 || connect(ends[0], (struct sockaddr *)&address, length) || (ends[1] = accept(listener, NULL, NULL)) < 0)
        fail("a connection to oneself");
    for (int side = 0; side < 2; side++) {
        setsockopt(ends[side], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        fcntl(ends[side], F_SETFL, O_NONBLOCK);
    }
    close(listener);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {65536, 262144, 1048576, 4194304, 16777216, largest};
    cpu_set_t allowed;
    int found = 0;
    if (argc > 1 && atof(argv[argc - 1]) > 0)
        budget = atof(argv[argc - 1]) / 1000;
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int core = 0; core < CPU_SETSIZE && found < 2; core++)
        if (CPU_ISSET(core, &allowed))
            cores[found++] = core;
    if (found < 2) {
        printf("note floor-tcp-half-round-trip there is one core only\n");
        return 0;
    }
    for (int side = 0; side < 2; side++) {
        data[side] = malloc(largest);
        if (!data[side])
            fail("memory");
        memset(data[side], 1, largest);
    }
    pin(cores[0]);
    join_ends(argc > 3 ? argv[1] : NULL, argc > 3 ? argv[2] : NULL);
    printf("result floor-tcp-half-round-trip 8 %.6g us\n", median_seconds(8, 8) / 2 * 1e6);
    for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++)
        printf("result floor-tcp-bandwidth %zu %.6g GB/s\n", sizes[which], (double)sizes[which] / median_seconds(sizes[which], 1) / 1e9);
    return 0;
}
