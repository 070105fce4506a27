/* Where the thread runs that looks after the network of a rank which is bound to one processor: "job", on others of the job too, or "rank", on that one. */
#define _GNU_SOURCE
#include "check.h"

#include <dirent.h>
#include <sched.h>

/* The processors that the thread of that name may run on; ends the job where there is none. */
static cpu_set_t processors_of(const char *name)
{
    cpu_set_t set;
    int found = 0;
    DIR *threads = opendir("/proc/self/task");
    CHECK(threads, "no list of threads");
    for (struct dirent *entry; !found && (entry = readdir(threads));) {
        char path[300], seen[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        if (fscanf(file, "%31s", seen) == 1 && !strcmp(seen, name))
            found = !sched_getaffinity(atoi(entry->d_name), sizeof set, &set);
        fclose(file);
    }
    closedir(threads);
    CHECK(found, "no thread is called %s", name);
    return set;
}

int main(int argc, char **argv)
{
    cpu_set_t all, own;
    int first = 0;
    sched_getaffinity(0, sizeof all, &all);
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&own);
    CPU_SET(first, &own);
    sched_setaffinity(0, sizeof own, &own);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK(argc == 2, "job or rank?");
    /* It is there at the latest when messages have come. */
    MPI_Barrier(MPI_COMM_WORLD);
    cpu_set_t keepers = processors_of("parnass-tcp");
    if (!strcmp(argv[1], "rank") || CPU_COUNT(&all) == 1) {
        CHECK(CPU_EQUAL(&keepers, &own), "it may run elsewhere");
    } else {
        CPU_XOR(&keepers, &keepers, &own);
        CHECK(CPU_COUNT(&keepers), "it may run on processor %d only", first);
    }
    sched_getaffinity(0, sizeof all, &all);
    CHECK(CPU_EQUAL(&all, &own), "the rank may run elsewhere");
    MPI_Finalize();
    if (check_rank == 0)
        puts("keepers: ok");
    return 0;
}
