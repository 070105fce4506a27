/* Short ways to the variables of the tool information interface, for the programs that test it. */
#ifndef TOOL_H
#define TOOL_H

#include "check.h"

/* The index of a performance variable, whatever its class. */
static inline int pvar_index(const char *name)
{
    static const int classes[] = {MPI_T_PVAR_CLASS_COUNTER, MPI_T_PVAR_CLASS_AGGREGATE, MPI_T_PVAR_CLASS_TIMER,
                                  MPI_T_PVAR_CLASS_HIGHWATERMARK, MPI_T_PVAR_CLASS_LEVEL};
    int index = -1;
    for (size_t place = 0; place < sizeof classes / sizeof *classes; place++)
        if (MPI_T_pvar_get_index(name, classes[place], &index) == MPI_SUCCESS)
            return index;
    CHECK(0, "there is no performance variable %s", name);
    return -1;
}

/* A handle of a performance variable, not started. */
static inline MPI_T_pvar_handle pvar(MPI_T_pvar_session session, const char *name, MPI_Comm *object)
{
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    int count = 0;
    SUCCEEDS(MPI_T_pvar_handle_alloc(session, pvar_index(name), object, &handle, &count));
    CHECK_EQUAL(count, 1);
    return handle;
}

static inline unsigned long long pvar_value(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    unsigned long long value = ~0ull;
    SUCCEEDS(MPI_T_pvar_read(session, handle, &value));
    return value;
}

static inline MPI_T_cvar_handle cvar(const char *name)
{
    int index = -1, count = 0;
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    SUCCEEDS(MPI_T_cvar_get_index(name, &index));
    SUCCEEDS(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    CHECK(count >= 1, "count is %d", count);
    return handle;
}

#endif
