/* What MPI_Alloc_mem gives is reached by loads and stores of the other ranks of the node once a window is on it, unless a tunable says otherwise ("library"):
 * whole or in part, again and again, however it is freed and had again, and beside memory of other kinds. */
#include "check.h"
#include <stdlib.h>

static int rank, size, lends;

/* The window on memory of the next rank, seen from here; NULL if it cannot be reached so. */
static volatile int *of_next(MPI_Win win)
{
    MPI_Aint bytes;
    int unit;
    void *base;
    MPI_Win_shared_query(win, (rank + 1) % size, &bytes, &unit, &base);
    return bytes ? base : NULL;
}

static MPI_Win window(int *memory, int count)
{
    MPI_Win win;
    MPI_Win_create(memory, count * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    return win;
}

/* Each rank stores into the memory of the next one, and puts and adds beside it. */
static void use(int *memory, int count, int turn, int expected)
{
    memset(memory, 0, count * sizeof(int));
    MPI_Win win = window(memory, count);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    volatile int *next = of_next(win);
    CHECK_EQUAL(next != NULL, expected);
    int mine = turn * size + rank, before = turn * size + (rank + size - 1) % size;
    if (next)
        next[0] = mine;
    else
        MPI_Put(&mine, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Put(&mine, 1, MPI_INT, (rank + 1) % size, count - 1, 1, MPI_INT, win);
    for (int to = 0; to < size; to++)
        MPI_Accumulate(&mine, 1, MPI_INT, to, 1, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_flush_all(win);
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    CHECK_EQUAL(memory[0], before);
    CHECK_EQUAL(memory[count - 1], before);
    CHECK_EQUAL(memory[1], turn * size * size + size * (size - 1) / 2);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    enum { MANY = 400 };
    static const int counts[] = {3, 1024, 5000, 70000, 1 << 20};
    check_start(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    lends = argc < 2 && size > 1;
    int turn = 0, *memory;

    /* Had, freed, and had again; the whole of it and a part. */
    for (int round = 0; round < 3; round++)
        for (size_t which = 0; which < sizeof counts / sizeof *counts; which++) {
            int count = counts[which];
            MPI_Alloc_mem(count * sizeof(int), MPI_INFO_NULL, &memory);
            use(memory, count, ++turn, lends || size == 1);
            use(memory, count, ++turn, lends || size == 1);
            if (count > 100)
                use(memory + 7, count / 2, ++turn, lends || size == 1);
            MPI_Free_mem(memory);
        }

    /* Beside memory of the program's own. */
    MPI_Alloc_mem(100 * sizeof(int), MPI_INFO_NULL, &memory);
    int *own = malloc(100 * sizeof(int));
    use(rank % 2 ? own : memory, 100, ++turn, size == 1 || (lends && (rank + 1) % size % 2 == 0));
    free(own);
    MPI_Free_mem(memory);

    /* More than are lent, and more bytes: what is left of them is had as before. */
    static int *blocks[MANY];
    for (int index = 0; index < MANY; index++) {
        MPI_Alloc_mem(400, MPI_INFO_NULL, &blocks[index]);
        memset(blocks[index], index % 100, 400);
    }
    use(blocks[0], 100, ++turn, lends || size == 1);
    use(blocks[MANY - 1], 100, ++turn, size == 1);
    for (int index = 1; index < MANY - 1; index++)
        CHECK_EQUAL(((char *)blocks[index])[399], index % 100);
    for (int index = 0; index < MANY; index++)
        MPI_Free_mem(blocks[index]);
    char *large;
    MPI_Alloc_mem(100 << 20, MPI_INFO_NULL, &large);
    use((int *)large, 1000, ++turn, size == 1);
    MPI_Free_mem(large);

    /* Messages out of it and into it, also long ones. */
    for (int bytes = 1000; bytes <= 8 << 20; bytes *= 20) {
        char *out, *in;
        MPI_Alloc_mem(bytes, MPI_INFO_NULL, &out);
        MPI_Alloc_mem(bytes, MPI_INFO_NULL, &in);
        memset(out, rank + 1, bytes);
        MPI_Sendrecv(out, bytes, MPI_CHAR, (rank + 1) % size, 0, in, bytes, MPI_CHAR, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQUAL(in[0], (rank + size - 1) % size + 1);
        CHECK_EQUAL(in[bytes - 1], (rank + size - 1) % size + 1);
        MPI_Free_mem(in);
        MPI_Free_mem(out);
    }

    /* Memory of which nobody has made a window, and which is not freed. */
    MPI_Alloc_mem(5000, MPI_INFO_NULL, &memory);
    memory[0] = 5;
    int code = check_end("lent");
    CHECK_EQUAL(memory[0], 5);
    return code;
}
