/* Ranks that only ask whether something has happened, again and again: a token goes round while everybody polls, by test and by probe. With more
 * ranks than processors that ends in time only if a call that has found nothing lets another rank run. */
#include "check.h"

enum { laps = 200 };

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size, token = 0;
    for (int lap = 0; lap < laps; lap++) {
        if (check_rank == 0) {
            token++;
            MPI_Send(&token, 1, MPI_INT, next, lap, MPI_COMM_WORLD);
        }
        int came = 0;
        if (lap % 2) {
            MPI_Request request;
            for (MPI_Irecv(&token, 1, MPI_INT, before, lap, MPI_COMM_WORLD, &request); !came;)
                MPI_Testall(1, &request, &came, MPI_STATUSES_IGNORE);
        } else {
            while (!came)
                MPI_Iprobe(before, lap, MPI_COMM_WORLD, &came, MPI_STATUS_IGNORE);
            MPI_Recv(&token, 1, MPI_INT, before, lap, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        CHECK_EQUAL(token, lap + 1);
        if (check_rank != 0)
            MPI_Send(&token, 1, MPI_INT, next, lap, MPI_COMM_WORLD);
    }
    return check_end("polling");
}
