/* Each rank says who it is. With the argument `sleep MS`, it waits before it ends. */
#include "check.h"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    MPI_Get_processor_name(name, &length);
    CHECK_EQUAL(length, strlen(name));
    printf("Hello from rank %d of %d on %s\n", check_rank, check_size, name);
    fflush(stdout);
    if (argc == 3 && strcmp(argv[1], "sleep") == 0)
        sleep_ms(atol(argv[2]));
    MPI_Finalize();
    return 0;
}
