/* Each way in which a call ends the program: the argument chooses. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void noted(MPI_Comm *comm, int *code, ...)
{
    printf("handler: %s code %d\n", *comm == MPI_COMM_WORLD ? "world" : "other", *code);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int value = 0, size;
    MPI_Comm other;
    printf("said before\n");
    if (!strcmp(way, "before")) MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    MPI_Init(&argc, &argv);
    if (!strcmp(way, "twice")) MPI_Init(&argc, &argv);
    if (!strcmp(way, "tag")) MPI_Send(&value, 1, MPI_INT, 0, -7, MPI_COMM_WORLD);
    if (!strcmp(way, "port")) MPI_Comm_accept("port", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    if (!strcmp(way, "abort")) MPI_Abort(MPI_COMM_WORLD, 42);
    if (!strcmp(way, "user")) {
        MPI_Errhandler handler;
        MPI_Comm_create_errhandler(noted, &handler);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        MPI_Errhandler_free(&handler);
        int code = MPI_Send(&value, 1, MPI_INT, 1000, 0, MPI_COMM_WORLD);
        printf("returned %d\n", code);
    }
    if (!strcmp(way, "return")) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        printf("returned %d\n", MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL));
        printf("returned %d\n", MPI_Comm_accept("port", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
    }
    MPI_Finalize();
    if (!strcmp(way, "after")) MPI_Comm_size(MPI_COMM_WORLD, &size);
    return 0;
}
