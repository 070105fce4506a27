/* Memory that the program frees stays with it: blocks of 1 MB that come and go, as those of messages do, cost no faults of pages once
 * there were some. With the argument "given-back": they do, since something else was asked for. */
#include "check.h"

enum { blocks = 3, length = 1000000, warm = 10, rounds = 100 };

static long faults(void)
{
    struct rusage usage;
    CHECK_EQUAL(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

static void one_round(int number)
{
    char *block[blocks];
    for (int index = 0; index < blocks; index++) {
        block[index] = malloc(length);
        CHECK(block[index], "no memory");
        memset(block[index], number + index, length);
    }
    MPI_Sendrecv(block[0], length, MPI_BYTE, (check_rank + 1) % check_size, 0, block[1], length, MPI_BYTE,
                 (check_rank + check_size - 1) % check_size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQUAL(block[1][length - 1], (char)number);
    for (int index = 0; index < blocks; index++)
        free(block[index]);
}

int main(int argc, char **argv)
{
    int given_back = argc > 1 && strcmp(argv[1], "given-back") == 0;
    check_start(&argc, &argv);
    for (int number = 0; number < warm; number++)
        one_round(number);
    long before = faults();
    for (int number = 0; number < rounds; number++)
        one_round(number);
    long pages = length / sysconf(_SC_PAGESIZE), found = faults() - before;
    if (given_back)
        CHECK(found > rounds * pages, "%ld faults of pages", found);
    else
        CHECK(found < rounds * pages / 10, "%ld faults of pages", found);
    return check_end("freed_memory");
}
