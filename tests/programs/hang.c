/* Never ends: the argument says why. What mpiexec tells of it is looked at from outside. */
#include "check.h"
#include <signal.h>

static char bytes[1 << 20];

/* A receive asks for another tag than is sent, and the others wait for its rank. */
static void tags(void)
{
    int value = 0;
    if (check_rank == 0)
        MPI_Recv(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (check_rank == 1)
        MPI_Send(&value, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Each sends a message that must be received before it receives one. */
static void sends(void)
{
    int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    MPI_Ssend(bytes, sizeof bytes, MPI_BYTE, next, 3, MPI_COMM_WORLD);
    MPI_Recv(bytes, sizeof bytes, MPI_BYTE, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Some are busy elsewhere while the others wait. */
static void absent(void)
{
    MPI_Comm own;
    volatile unsigned rounds = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Barrier(own);
    if (check_rank == 0)
        for (;;)
            rounds++;
    if (check_rank == 1)
        raise(SIGSTOP);
    if (check_rank == 2)
        sleep(1000);
    MPI_Recv(bytes, 1, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, own, MPI_STATUS_IGNORE);
}

/* Waits for a world that hangs itself. */
static void worlds(char *program)
{
    MPI_Comm others;
    char *arguments[] = {"tags", NULL};
    MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others, MPI_ERRCODES_IGNORE);
    MPI_Barrier(others);
}

int main(int argc, char **argv)
{
    const char *why = argc > 1 ? argv[1] : "";
    check_start(&argc, &argv);
    if (strcmp(why, "tags") == 0)
        tags();
    else if (strcmp(why, "sends") == 0)
        sends();
    else if (strcmp(why, "absent") == 0)
        absent();
    else if (strcmp(why, "worlds") == 0)
        worlds(argv[0]);
    CHECK(0, "nothing hangs that is called %s", why);
    return check_end("hang");
}
