/* support.c: what the bodies of the Fortran procedures share; compiled once. */
#include "support.h"

#include <stdio.h>

void *parnass_f_memory(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "Parnass (Fortran): no memory for %zu bytes\n", bytes);
        abort();
    }
    return memory;
}

char *parnass_f_text(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == ' ')
        length--;
    char *copy = parnass_f_memory(length + 1);
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

char *parnass_f_word(const char *text, size_t length)
{
    while (length > 0 && *text == ' ') {
        text++;
        length--;
    }
    return parnass_f_text(text, length);
}

void parnass_f_give_text(char *text, size_t length, const char *from)
{
    const size_t given = strlen(from);
    if (given >= length) {
        memcpy(text, from, length);
        return;
    }
    memcpy(text, from, given);
    memset(text + given, ' ', length - given);
}

void parnass_f_from_one(fint *indices, fint count)
{
    for (fint place = 0; place < count; place++)
        if (indices[place] != MPI_UNDEFINED)
            indices[place]++;
}

/* The procedure itself says what is wrong with the null handle. */
static int known_comm(fint comm)
{
    return comm != (fint)(intptr_t)MPI_COMM_NULL;
}

long parnass_f_peers(fint comm)
{
    MPI_Comm handle = PMPI_Comm_fromint(comm);
    int inter = 0, size = 0;
    if (!known_comm(comm) || PMPI_Comm_test_inter(handle, &inter) != MPI_SUCCESS)
        return 0;
    if (inter)
        PMPI_Comm_remote_size(handle, &size);
    else
        PMPI_Comm_size(handle, &size);
    return size;
}

long parnass_f_dimensions(fint comm)
{
    MPI_Comm handle = PMPI_Comm_fromint(comm);
    int topology = MPI_UNDEFINED, dimensions = 0;
    if (known_comm(comm) && PMPI_Topo_test(handle, &topology) == MPI_SUCCESS && topology == MPI_CART)
        PMPI_Cartdim_get(handle, &dimensions);
    return dimensions;
}

long parnass_f_neighbors(fint comm, int outgoing)
{
    MPI_Comm handle = PMPI_Comm_fromint(comm);
    int topology = MPI_UNDEFINED, count = 0, other = 0, weighted = 0, rank = 0;
    if (!known_comm(comm) || PMPI_Topo_test(handle, &topology) != MPI_SUCCESS)
        return 0;
    switch (topology) {
    case MPI_CART:
        PMPI_Cartdim_get(handle, &count);
        return 2L * count;
    case MPI_GRAPH:
        PMPI_Comm_rank(handle, &rank);
        PMPI_Graph_neighbors_count(handle, rank, &count);
        return count;
    case MPI_DIST_GRAPH:
        PMPI_Dist_graph_neighbors_count(handle, &count, &other, &weighted);
        return outgoing ? other : count;
    default:
        return 0;
    }
}

/* In logical.f90: the values of LOGICAL, the sizes of LOGICAL, INTEGER, REAL and DOUBLE PRECISION, and which of the kinds
 * below there are. */
extern void parnass_f_describe_types_(logical *true_value, logical *false_value, fint *sizes, fint *supported);

static const char *const DEFAULT_TYPES[] = {"logical", "integer", "real", "double_precision"};
static const char *const SIZED_TYPES[] = {
    "logical1",  "logical2", "logical4", "logical8", "logical16", "integer1", "integer2",  "integer4", "integer8",
    "integer16", "real2",    "real4",    "real8",    "real16",    "complex4", "complex8",  "complex16", "complex32",
    "double_complex",
};
enum { DEFAULTS = 4, SIZED = sizeof SIZED_TYPES / sizeof *SIZED_TYPES };

void parnass_f_describe(void)
{
    static int told;
    if (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
        return;
    logical true_value, false_value;
    fint sizes[DEFAULTS], supported[SIZED];
    char key[64], value[16];
    parnass_f_describe_types_(&true_value, &false_value, sizes, supported);
    /* Another part of the program, built with another compiler, may have said it already; nothing is said twice. */
    logical known[2];
    int is_set = 0;
    MPI_Info info = MPI_INFO_NULL;
    if (PMPI_Abi_get_fortran_booleans(sizes[0], &known[0], &known[1], &is_set) == MPI_SUCCESS && !is_set)
        PMPI_Abi_set_fortran_booleans(sizes[0], &true_value, &false_value);
    if (PMPI_Abi_get_fortran_info(&info) != MPI_SUCCESS)
        return;
    if (info == MPI_INFO_NULL && PMPI_Info_create(&info) == MPI_SUCCESS) {
        for (int type = 0; type < DEFAULTS; type++) {
            snprintf(key, sizeof key, "mpi_%s_size", DEFAULT_TYPES[type]);
            snprintf(value, sizeof value, "%d", sizes[type]);
            PMPI_Info_set(info, key, value);
        }
        for (int type = 0; type < (int)SIZED; type++) {
            snprintf(key, sizeof key, "mpi_%s_supported", SIZED_TYPES[type]);
            PMPI_Info_set(info, key, supported[type] ? "true" : "false");
        }
        PMPI_Abi_set_fortran_info(info);
    }
    if (info != MPI_INFO_NULL)
        PMPI_Info_free(&info);
}

/* ---- Attributes ---- */

enum { CELLS = 256 };

struct cell {
    MPI_Aint value;
    struct cell *next_free;
};

struct cells {
    struct cell cell[CELLS];
    struct cells *next;
};

static struct cells *all_cells;
static struct cell *free_cells;
static char cells_are_held;

static void hold_cells(void)
{
    while (__atomic_test_and_set(&cells_are_held, __ATOMIC_ACQUIRE))
        ;
}

static void let_cells_go(void)
{
    __atomic_clear(&cells_are_held, __ATOMIC_RELEASE);
}

void *parnass_f_new_cell(MPI_Aint value)
{
    hold_cells();
    if (!free_cells) {
        struct cells *more = parnass_f_memory(sizeof *more);
        for (int place = 0; place < CELLS; place++) {
            more->cell[place].next_free = free_cells;
            free_cells = &more->cell[place];
        }
        more->next = all_cells;
        all_cells = more;
    }
    struct cell *cell = free_cells;
    free_cells = cell->next_free;
    cell->value = value;
    let_cells_go();
    return cell;
}

static int is_cell(const void *address)
{
    for (struct cells *cells = all_cells; cells; cells = cells->next) {
        const uintptr_t first = (uintptr_t)cells->cell, place = (uintptr_t)address;
        if (place >= first && place < first + sizeof cells->cell)
            return (place - first) % sizeof(struct cell) == 0;
    }
    return 0;
}

int parnass_f_is_cell(const void *address)
{
    hold_cells();
    const int is = is_cell(address);
    let_cells_go();
    return is;
}

void parnass_f_free_cell(void *address)
{
    hold_cells();
    if (is_cell(address)) {
        struct cell *cell = address;
        cell->next_free = free_cells;
        free_cells = cell;
    }
    let_cells_go();
}

MPI_Aint parnass_f_attribute(void *held)
{
    return parnass_f_is_cell(held) ? ((struct cell *)held)->value : (MPI_Aint)held;
}

MPI_Aint parnass_f_predefined_attribute(fint keyval, void *held)
{
    switch (keyval) {
    case MPI_TAG_UB:
    case MPI_IO:
    case MPI_HOST:
    case MPI_WTIME_IS_GLOBAL:
    case MPI_APPNUM:
    case MPI_LASTUSEDCODE:
    case MPI_UNIVERSE_SIZE:
    case MPI_WIN_DISP_UNIT:
    case MPI_WIN_CREATE_FLAVOR:
    case MPI_WIN_MODEL:
        return *(int *)held;
    case MPI_WIN_SIZE:
        return *(MPI_Aint *)held;
    default:
        return parnass_f_attribute(held);
    }
}

#define PREDEFINED(prefix, integer)                                                                                    \
    void prefix##null_copy_fn_(fint *object, fint *keyval, integer *extra, integer *in, integer *out, logical *flag,   \
                               fint *ierror)                                                                           \
    {                                                                                                                  \
        (void)object, (void)keyval, (void)extra, (void)in, (void)out;                                                  \
        SET_LOGICAL(flag, 0);                                                                                          \
        *ierror = MPI_SUCCESS;                                                                                         \
    }                                                                                                                  \
    void prefix##dup_fn_(fint *object, fint *keyval, integer *extra, integer *in, integer *out, logical *flag,         \
                         fint *ierror)                                                                                 \
    {                                                                                                                  \
        (void)object, (void)keyval, (void)extra;                                                                       \
        *out = *in;                                                                                                    \
        SET_LOGICAL(flag, 1);                                                                                          \
        *ierror = MPI_SUCCESS;                                                                                         \
    }                                                                                                                  \
    void prefix##null_delete_fn_(fint *object, fint *keyval, integer *value, integer *extra, fint *ierror)             \
    {                                                                                                                  \
        (void)object, (void)keyval, (void)value, (void)extra;                                                          \
        *ierror = MPI_SUCCESS;                                                                                         \
    }

PREDEFINED(mpi_comm_, MPI_Aint)
PREDEFINED(mpi_type_, MPI_Aint)
PREDEFINED(mpi_win_, MPI_Aint)
PREDEFINED(mpi_, fint)

/* Only their addresses mean something. */
void mpi_conversion_fn_null_(void *userbuf, fint *datatype, fint *count, void *filebuf, MPI_Offset *position,
                             MPI_Aint *extra, fint *ierror)
{
    (void)userbuf, (void)datatype, (void)count, (void)filebuf, (void)position, (void)extra;
    *ierror = MPI_ERR_CONVERSION;
}

void mpi_conversion_fn_null_c_(void *userbuf, fint *datatype, MPI_Count *count, void *filebuf, MPI_Offset *position,
                               MPI_Aint *extra, fint *ierror)
{
    (void)userbuf, (void)datatype, (void)count, (void)filebuf, (void)position, (void)extra;
    *ierror = MPI_ERR_CONVERSION;
}
