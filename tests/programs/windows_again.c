/* Windows that are made, used and freed again and again, some while others are alive, by all ranks and by halves of them, of many lengths: memory that was used
 * before is zero, locks that were held are free, and no two windows have the same. */
#include "check.h"

enum { most = 12, longest = 240000 };

struct open_window {
    MPI_Win win;
    MPI_Comm comm;
    int is_open, count, *memory;
};

static unsigned next(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 8) % below;
}

static void close_window(struct open_window *it)
{
    MPI_Win_fence(0, it->win);
    MPI_Win_free(&it->win);
    it->is_open = 0;
}

/* Each rank puts a number at the end of the next one's memory, and adds it at the beginning. */
static void use_window(struct open_window *it, int step)
{
    int rank, size;
    MPI_Comm_rank(it->comm, &rank);
    MPI_Comm_size(it->comm, &size);
    for (int index = 0; index < it->count; index++)
        CHECK(it->memory[index] == 0, "step %d: place %d of a new window is %d", step, index, it->memory[index]);
    int mine = step * 100 + rank, theirs = step * 100 + (rank + size - 1) % size, to = (rank + 1) % size;
    MPI_Win_fence(0, it->win);
    MPI_Put(&mine, 1, MPI_INT, to, it->count - 1, 1, MPI_INT, it->win);
    MPI_Accumulate(&mine, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_SUM, it->win);
    MPI_Win_fence(0, it->win);
    CHECK_EQUAL(it->memory[it->count - 1], theirs);
    CHECK_EQUAL(it->memory[0], theirs);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, it->win);
    MPI_Win_unlock(0, it->win);
}

static void open_window(struct open_window *it, MPI_Comm comm, unsigned *seed, int *own)
{
    unsigned sort = next(seed, 3);
    it->comm = comm;
    it->count = (int)(next(seed, 6) + 1) * (sort == 0 ? longest / 6 : 1000);
    MPI_Aint bytes = (MPI_Aint)it->count * (MPI_Aint)sizeof(int);
    if (sort == 1) {
        it->memory = own;
        memset(own, 0, (size_t)bytes);
        MPI_Win_create(own, bytes, sizeof(int), MPI_INFO_NULL, comm, &it->win);
    } else {
        MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, comm, &it->memory, &it->win);
    }
    it->is_open = 1;
}

int main(int argc, char **argv)
{
    static struct open_window all[most];
    static int own[most][longest];
    int steps = argc > 1 ? atoi(argv[1]) : 300;
    check_start(&argc, &argv);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &half);
    unsigned of_all = 7, of_half = 100 + (unsigned)check_rank % 2;
    for (int step = 0; step < steps; step++) {
        int by_half = step % 3 == 0;
        unsigned *seed = by_half ? &of_half : &of_all, which = next(seed, most / 2) + (by_half ? most / 2 : 0);
        if (all[which].is_open) {
            close_window(&all[which]);
        } else {
            open_window(&all[which], by_half ? half : MPI_COMM_WORLD, seed, own[which]);
            use_window(&all[which], step);
        }
    }
    for (int which = 0; which < most; which++)
        if (all[which].is_open)
            close_window(&all[which]);
    MPI_Comm_free(&half);
    return check_end("windows_again");
}
