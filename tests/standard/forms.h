/* Forms of a procedure. A file whose name ends in .inc is included twice: once with LARGE for the forms whose counts are MPI_Count. */
#ifndef FORMS_H
#define FORMS_H

#include "../programs/check.h"

#define CELLS 256
static int sent[CELLS] __attribute__((unused)), got[CELLS], want[CELLS];

static inline void clear(int *cells)
{
    for (int index = 0; index < CELLS; index++)
        cells[index] = -1;
}

/* What was received, and that nothing beside it was written. */
static inline void compare(const char *what)
{
    for (int index = 0; index < CELLS; index++)
        CHECK(got[index] == want[index], "%s: cell %d is %d, expected %d", what, index, got[index], want[index]);
    clear(got);
}

static inline void finish(MPI_Request *request)
{
    SUCCEEDS(MPI_Wait(request, MPI_STATUS_IGNORE));
}

#endif

#undef FORM
#undef Count
#undef Displacement
#ifdef LARGE
#define FORM(name) MPI_##name##_c
#define Count MPI_Count
#define Displacement MPI_Aint
#else
#define FORM(name) MPI_##name
#define Count int
#define Displacement int
#endif
