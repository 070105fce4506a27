/* What programs have in common in which a sender stops in the middle of writing a message: its data goes on in a page that it may not read. */
#ifndef STOPPING_H
#define STOPPING_H

#include "check.h"

#include <signal.h>
#include <sys/mman.h>

enum { MOST = 16384, TAG = 5 };

static unsigned char *pages;
static long page;
/* Of the memory of all ranks. */
static MPI_Win window;

static int allow(int protection)
{
    return mprotect(pages + page, MOST, protection) == 0;
}

static void await(volatile int *what)
{
    while (!*what)
        sleep_ms(1);
}

/* `bytes` of memory of `owner` for all ranks. `stop` is called when a sender has come to the second page. */
static void *start_stopping(int owner, size_t bytes, void (*stop)(int))
{
    void *shared;
    MPI_Aint size;
    int unit;
    page = sysconf(_SC_PAGESIZE);
    pages = mmap(NULL, (size_t)page + MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED, "mmap");
    MPI_Win_allocate_shared(check_rank == owner ? (MPI_Aint)bytes : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &window);
    MPI_Win_shared_query(window, owner, &size, &unit, &shared);
    signal(SIGSEGV, stop);
    return shared;
}

/* Sends `length` bytes of which the last `behind` cannot be read at first. */
static void send_stopping(int length, int behind, int target)
{
    unsigned char *data = pages + page + behind - length;
    CHECK(allow(PROT_READ | PROT_WRITE), "mprotect");
    fill_bytes(data, (size_t)length, (uint64_t)length);
    CHECK(allow(PROT_NONE), "mprotect");
    MPI_Send(data, length, MPI_BYTE, target, TAG, MPI_COMM_WORLD);
}

#endif
