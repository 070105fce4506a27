/* The last process is stopped for 25 s, as by a debugger or a scheduler that suspends jobs, just when the first one wants a connection.
 * With `caller`: it is stopped for 3 s, and the first one, which calls it meanwhile, from the 2nd second on for 24 s: who was called has
 * given up by then, and all the time that a call may take is over, but nobody has used it. */
#include "check.h"

#include <signal.h>
#include <string.h>
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
    int caller = argc > 1 && strcmp(argv[1], "caller") == 0;
    if (check_rank == last) {
        stop_for(caller ? 3 : 25);
        SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQUAL(got, 7);
    } else if (check_rank == 0) {
        sleep(1);
        MPI_Request request;
        SUCCEEDS(MPI_Isend(&number, 1, MPI_INT, last, 1, MPI_COMM_WORLD, &request));
        if (caller) {
            sleep(1);
            stop_for(24);
        }
        SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return check_end("stopped");
}
