/* What every test program uses: a check that says where and why it failed and ends the job, and deterministic bytes. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int check_rank = -1, check_size = -1;

/* Ends the job with exit status 97, so that the table can tell a failed check from a crash. */
#define CHECK(condition, ...)                                                                       \
    do {                                                                                            \
        if (!(condition)) {                                                                         \
            fprintf(stderr, "%s:%d: rank %d of %d: check failed: %s: ", __FILE__, __LINE__,         \
                    check_rank, check_size, #condition);                                            \
            fprintf(stderr, __VA_ARGS__);                                                           \
            fputc('\n', stderr);                                                                    \
            fflush(stderr);                                                                         \
            MPI_Abort(MPI_COMM_WORLD, 97);                                                          \
        }                                                                                           \
    } while (0)

#define CHECK_EQUAL(actual, expected)                                                               \
    do {                                                                                            \
        long long actual_ = (long long)(actual), expected_ = (long long)(expected);                 \
        CHECK(actual_ == expected_, #actual " is %lld, expected %lld", actual_, expected_);         \
    } while (0)

static inline const char *check_explained(int code)
{
    static char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    return text;
}

/* For calls under MPI_ERRORS_RETURN that must succeed. */
#define SUCCEEDS(call)                                                                              \
    do {                                                                                            \
        int code_ = (call);                                                                         \
        CHECK(code_ == MPI_SUCCESS, #call " returned %d: %s", code_, check_explained(code_));       \
    } while (0)

/* The class of what a call under MPI_ERRORS_RETURN has returned. */
static inline int class_of(int code)
{
    int found;
    SUCCEEDS(MPI_Error_class(code, &found));
    return found;
}

static inline void check_start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
}

/* Prints `NAME: ok` from rank 0 once all ranks are here, and finalizes. */
static inline int check_end(const char *name)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        printf("%s: ok\n", name);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}

static inline uint64_t check_mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

/* Fills `length` bytes with a pattern that depends on `seed` and on the place. */
static inline void fill_bytes(void *target, size_t length, uint64_t seed)
{
    unsigned char *bytes = target;
    size_t words = length / 8;
    for (size_t index = 0; index < words; index++) {
        uint64_t word = (seed ^ (index * 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
        memcpy(bytes + 8 * index, &word, 8);
    }
    for (size_t index = 8 * words; index < length; index++)
        bytes[index] = (unsigned char)(seed + index);
}

/* The index of the first byte (rounded down to its word) that differs from fill_bytes' pattern, or -1. */
static inline long long wrong_byte(const void *source, size_t length, uint64_t seed)
{
    const unsigned char *bytes = source;
    size_t words = length / 8;
    for (size_t index = 0; index < words; index++) {
        uint64_t word = (seed ^ (index * 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u, found;
        memcpy(&found, bytes + 8 * index, 8);
        if (found != word)
            return (long long)(8 * index);
    }
    for (size_t index = 8 * words; index < length; index++)
        if (bytes[index] != (unsigned char)(seed + index))
            return (long long)index;
    return -1;
}

/* CPU time that this process has used, user and system, in seconds. */
static inline double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec +
           (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec;
}

/* How often threads of this process have gone to sleep. */
static inline long sleeps(void)
{
    struct rusage usage;
    CHECK_EQUAL(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_nvcsw;
}

/* Private memory of this process in MiB, now: pages of its own, without what it shares. -1 when unknown. */
static inline double private_mib(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double kib = -1;
    while (file && fgets(line, sizeof line, file)) {
        double value;
        if (sscanf(line, "Private_Clean: %lf", &value) == 1 || sscanf(line, "Private_Dirty: %lf", &value) == 1)
            kib = (kib < 0 ? 0 : kib) + value;
    }
    if (file)
        fclose(file);
    return kib < 0 ? -1 : kib / 1024;
}

/* Resident memory of this process in MiB, shared pages included: now, or at its highest. */
static inline double resident_mib(int highest)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    double kib = -1;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, highest ? "VmHWM: %lf" : "VmRSS: %lf", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib < 0 ? -1 : kib / 1024;
}

static inline void sleep_ms(long milliseconds)
{
    struct timespec duration = {milliseconds / 1000, (milliseconds % 1000) * 1000000};
    while (nanosleep(&duration, &duration) != 0)
        ;
}

#endif
