/* The last process is stopped for 25 s, as by a debugger or a scheduler that suspends jobs, just when the first one wants a connection. */
#include "check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void stop_for(unsigned seconds)
{
    pid_t child = fork();
    CHECK(child >= 0, "a child");
    if (child == 0) {
        sleep(seconds);
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    int number = 7, got = 0;
    check_start(&argc, &argv);
    int last = check_size - 1;
    if (check_rank == last) {
        stop_for(25);
        SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQUAL(got, 7);
    } else if (check_rank == 0) {
        sleep(1);
        SUCCEEDS(MPI_Send(&number, 1, MPI_INT, last, 1, MPI_COMM_WORLD));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return check_end("stopped");
}
