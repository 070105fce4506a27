/* sections.c: buffers that are array sections with gaps, as mpi_f08 gets them; compiled once.
 *
 * Where one count and one datatype describe a buffer, a derived datatype takes their place. Otherwise the operation works on
 * a dense copy, which the library keeps with the request until the operation is complete.
 */
#include "support.h"

#ifdef PARNASS_DESCRIPTORS

#include <stdio.h>

/* ---- Datatypes ---- */

/* A datatype for the first `count` elements of the first `dimensions` dimensions, from one for an element. */
static int first_elements(const CFI_cdesc_t *array, int dimensions, MPI_Count count, MPI_Datatype element,
                          MPI_Datatype *made)
{
    if (dimensions == 0)
        return PMPI_Type_dup(element, made);
    MPI_Count plane = 1;
    for (int place = 0; place < dimensions - 1; place++)
        plane *= array->dim[place].extent;
    const MPI_Count whole = count / plane, rest = count % plane, step = array->dim[dimensions - 1].sm;
    MPI_Datatype parts[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    MPI_Count lengths[2] = {1, 1}, places[2] = {0, whole * step};
    int used = 0, code = MPI_SUCCESS;
    if (whole > 0) {
        MPI_Datatype full;
        code = first_elements(array, dimensions - 1, plane, element, &full);
        if (code != MPI_SUCCESS)
            return code;
        code = PMPI_Type_create_hvector_c(whole, 1, step, full, &parts[used++]);
        PMPI_Type_free(&full);
    }
    if (code == MPI_SUCCESS && rest > 0) {
        places[used] = whole * step;
        code = first_elements(array, dimensions - 1, rest, element, &parts[used++]);
    }
    if (code == MPI_SUCCESS)
        code = PMPI_Type_create_struct_c(used, lengths, places, parts, made);
    for (int part = 0; part < used; part++)
        if (parts[part] != MPI_DATATYPE_NULL)
            PMPI_Type_free(&parts[part]);
    return code;
}

/* Describes `count` elements of `datatype` in the array by one datatype. 0 where it cannot be done. */
static int describe(struct parnass_section *section, MPI_Count count, MPI_Datatype datatype)
{
    const CFI_cdesc_t *array = section->array;
    MPI_Count size, lower, extent, true_lower, true_extent;
    if (count <= 0 || datatype == MPI_DATATYPE_NULL || PMPI_Type_size_c(datatype, &size) != MPI_SUCCESS ||
        PMPI_Type_get_extent_c(datatype, &lower, &extent) != MPI_SUCCESS ||
        PMPI_Type_get_true_extent_c(datatype, &true_lower, &true_extent) != MPI_SUCCESS)
        return 0;
    const MPI_Count length = (MPI_Count)array->elem_len;
    if (size <= 0 || size != extent || size != true_extent || lower != 0 || true_lower != 0 || length % size != 0 ||
        count * size % length != 0)
        return 0;
    MPI_Datatype element;
    if (PMPI_Type_contiguous_c(length / size, datatype, &element) != MPI_SUCCESS)
        return 0;
    int code = first_elements(array, array->rank, count * size / length, element, &section->made);
    PMPI_Type_free(&element);
    if (code != MPI_SUCCESS || PMPI_Type_commit(&section->made) != MPI_SUCCESS) {
        section->made = 0;
        return 0;
    }
    section->count = 1;
    section->count_c = 1;
    section->datatype = PMPI_Type_toint(section->made);
    return 1;
}

/* ---- Copies ---- */

struct parnass_copy {
    char *dense;
    char *before; /* what the copy held when it was made, where data goes back; or 0 */
    size_t bytes;
    MPI_Count partitions, step, span; /* of a partitioned operation: from one to the next, and how long each is, in bytes */
    /* The section. */
    char *base;
    size_t length; /* of an element */
    int rank;
    CFI_dim_t dim[CFI_MAX_RANK];
};

/* An entry of Parnass alone: `carry` is called when the data of the request must be carried to the copy or back (see
 * request/staged.rs), `end` when nothing uses the copy any more. */
enum { AT_START, AT_READY, AT_ARRIVAL, AT_COMPLETION };
extern int PMPIX_Request_stage(void (*carry)(void *, int, int), void (*end)(void *), void *state, MPI_Request *request)
    __attribute__((weak));

/* Writes what has changed in a piece of the copy, and nothing else: what lies beside it belongs to the program, and may have
 * been changed meanwhile. */
static void give_back(char *element, const char *dense, char *before, size_t length)
{
    if (memcmp(dense, before, length) == 0)
        return;
    for (size_t byte = 0; byte < length; byte++) {
        if (dense[byte] != before[byte])
            element[byte] = before[byte] = dense[byte];
    }
}

/* Carries the bytes from `first` to `end` of the section to the copy, or back. */
static void carry(struct parnass_copy *copy, size_t first, size_t end, int back)
{
    CFI_index_t place[CFI_MAX_RANK];
    char *element = copy->base;
    size_t rest = first / copy->length;
    for (int dimension = 0; dimension < copy->rank; dimension++) {
        const CFI_dim_t *dim = &copy->dim[dimension];
        place[dimension] = (CFI_index_t)(rest % (size_t)dim->extent);
        rest /= (size_t)dim->extent;
        element += place[dimension] * dim->sm;
    }
    for (size_t byte = first; byte < end;) {
        const size_t inside = byte % copy->length;
        const size_t length = copy->length - inside < end - byte ? copy->length - inside : end - byte;
        if (back) {
            give_back(element + inside, copy->dense + byte, copy->before + byte, length);
        } else {
            memcpy(copy->dense + byte, element + inside, length);
            if (copy->before)
                memcpy(copy->before + byte, element + inside, length);
        }
        byte += length;
        for (int dimension = 0; dimension < copy->rank; dimension++) {
            element += copy->dim[dimension].sm;
            if (++place[dimension] < copy->dim[dimension].extent)
                break;
            element -= place[dimension] * copy->dim[dimension].sm;
            place[dimension] = 0;
        }
    }
}

static struct parnass_copy *new_copy(const CFI_cdesc_t *array, int how)
{
    struct parnass_copy *copy = parnass_f_memory(sizeof *copy);
    *copy = (struct parnass_copy){.base = array->base_addr, .length = array->elem_len, .rank = array->rank};
    copy->bytes = array->elem_len;
    for (int dimension = 0; dimension < array->rank; dimension++) {
        copy->dim[dimension] = array->dim[dimension];
        copy->bytes *= (size_t)array->dim[dimension].extent;
    }
    copy->dense = parnass_f_memory(copy->bytes);
    if (how & WRITE)
        copy->before = parnass_f_memory(copy->bytes);
    carry(copy, 0, copy->bytes, 0);
    return copy;
}

static void free_copy(void *state)
{
    struct parnass_copy *copy = state;
    free(copy->dense);
    free(copy->before);
    free(copy);
}

static void at_moment(void *state, int moment, int partition)
{
    struct parnass_copy *copy = state;
    size_t first = 0, end = copy->bytes;
    if (moment == AT_READY || moment == AT_ARRIVAL) {
        if (partition < 0 || partition >= copy->partitions)
            return;
        first = (size_t)(partition * copy->step);
        if (first >= end)
            return;
        if ((size_t)copy->span < end - first)
            end = first + (size_t)copy->span;
    }
    if (moment == AT_START || moment == AT_READY)
        carry(copy, first, end, 0);
    else if (copy->before)
        carry(copy, first, end, 1);
}

/* ---- The split collective operations on files: the copies are kept from the beginning to the end ---- */

struct split {
    fint file;
    struct parnass_copy *copy;
    struct split *next;
};

static struct split *splits;
static char splits_are_held;

static void hold_splits(void)
{
    while (__atomic_test_and_set(&splits_are_held, __ATOMIC_ACQUIRE))
        ;
}

static void let_splits_go(void)
{
    __atomic_clear(&splits_are_held, __ATOMIC_RELEASE);
}

static void begin_split(fint file, struct parnass_copy *copy)
{
    struct split *split = parnass_f_memory(sizeof *split);
    hold_splits();
    *split = (struct split){.file = file, .copy = copy, .next = splits};
    splits = split;
    let_splits_go();
}

void parnass_f_end_split(fint file)
{
    if (!__atomic_load_n(&splits, __ATOMIC_RELAXED))
        return;
    hold_splits();
    struct split **place = &splits;
    while (*place && (*place)->file != file)
        place = &(*place)->next;
    struct split *split = *place;
    if (split)
        *place = split->next;
    let_splits_go();
    if (!split)
        return;
    at_moment(split->copy, AT_COMPLETION, 0);
    free_copy(split->copy);
    free(split);
}

/* ---- Around a call ---- */

/* Raises an error that says what cannot be done. */
static fint refuse(const char *procedure, const char *argument)
{
    static int code = MPI_SUCCESS;
    if (code == MPI_SUCCESS) {
        if (PMPI_Add_error_code(MPI_ERR_BUFFER, &code) != MPI_SUCCESS)
            return MPI_ERR_BUFFER;
        PMPI_Add_error_string(code, "an array section with gaps is a buffer of a call that returns before it is used, no datatype "
                                    "describes it, and this MPI library cannot keep a copy; pass a contiguous array");
    }
    fprintf(stderr,
            "Parnass (Fortran): %s: %s is an array section with gaps, of which this MPI library cannot keep a copy until the call "
            "completes; pass a contiguous array\n",
            procedure, argument);
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, code);
    return code;
}

fint parnass_f_open(struct parnass_section *section, const char *procedure, const char *argument, CFI_cdesc_t *array,
                    int how, MPI_Count count, fint datatype)
{
    *section = (struct parnass_section){
        .address = array->base_addr,
        .count = (fint)count,
        .count_c = count,
        .datatype = datatype,
        .array = array,
    };
    if (IS_DENSE(array))
        return MPI_SUCCESS;
    if ((how & DESCRIBED) && describe(section, count, PMPI_Type_fromint(datatype)))
        return MPI_SUCCESS;
    if ((how & DESCRIBED) && count == 0)
        return MPI_SUCCESS;
    if ((how & NONBLOCKING) && !PMPIX_Request_stage)
        return refuse(procedure, argument);
    section->copy = new_copy(array, how);
    section->address = section->copy->dense;
    return MPI_SUCCESS;
}

void parnass_f_partition(struct parnass_section *section, fint partitions, MPI_Count count, fint datatype)
{
    MPI_Count lower, extent, true_lower, true_extent;
    MPI_Datatype type = PMPI_Type_fromint(datatype);
    if (!section->copy || PMPI_Type_get_extent_c(type, &lower, &extent) != MPI_SUCCESS ||
        PMPI_Type_get_true_extent_c(type, &true_lower, &true_extent) != MPI_SUCCESS)
        return;
    section->copy->partitions = partitions;
    section->copy->step = count * extent;
    section->copy->span = (count - 1) * extent + true_lower + true_extent;
}

void parnass_f_close(struct parnass_section *section)
{
    if (section->made)
        PMPI_Type_free(&section->made);
    if (section->copy) {
        at_moment(section->copy, AT_COMPLETION, 0);
        free_copy(section->copy);
    }
}

fint parnass_f_close_later(struct parnass_section *section, fint code, fint *request)
{
    struct parnass_copy *copy = section->copy;
    if (!copy || code != MPI_SUCCESS) {
        parnass_f_close(section);
        return code;
    }
    MPI_Request handle = IN(MPI_Request, Request, *request);
    code = PMPIX_Request_stage(at_moment, free_copy, copy, &handle);
    *request = OUT(Request, handle);
    return code;
}

fint parnass_f_close_split(struct parnass_section *section, fint code, fint file)
{
    if (section->copy && code == MPI_SUCCESS)
        begin_split(file, section->copy);
    else
        parnass_f_close(section);
    return code;
}

#endif
