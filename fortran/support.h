/* support.h: what the bodies of the Fortran procedures are made of.
 *
 * Fortran passes every argument by reference; the lengths of CHARACTER arguments follow all others, by value. The names
 * that the linker sees are in lower case and end in an underscore, as gfortran, flang, ifx and nvfortran make them.
 *
 * What mpi_f08 calls under a name that ends in _f08ts has BIND(C): buffers, and CHARACTER arguments beside them, come as
 * the descriptors of ISO_Fortran_binding.h.
 */
#ifndef PARNASS_SUPPORT_H
#define PARNASS_SUPPORT_H

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The compiler's own ISO_Fortran_binding.h, if it has one. */
#ifdef PARNASS_DESCRIPTORS
#include PARNASS_DESCRIPTORS
#endif

typedef int fint;       /* a default INTEGER; mpifort has checked its size */
typedef fint logical;   /* a default LOGICAL, as long as an INTEGER */
typedef size_t flength; /* the length of a CHARACTER argument */
typedef void parnass_function(void);

/* The two sets of names. */
#ifdef PARNASS_PMPI
#define F(name) pmpi_##name##_
#define M(name) PMPI_##name
#define FNAME(name) "pmpi_" name "_"
#define WEAK
#else
#define F(name) mpi_##name##_
#define M(name) MPI_##name
#define FNAME(name) "mpi_" name "_"
/* A program may have an MPI_X of its own that calls PMPI_X. */
#define WEAK __attribute__((weak))
#endif
#define ALIAS(name, other) extern __typeof__(F(name)) F(other) __attribute__((weak, alias(FNAME(#name))))
#define HIDDEN __attribute__((visibility("hidden")))

#define DONE(code)                                                                                  \
    do {                                                                                            \
        if (ierror)                                                                                 \
            *ierror = (code);                                                                       \
    } while (0)

/* Handles. The predefined ones are the same small numbers in both languages. */
#define IN(type, family, value)                                                                     \
    ((uint32_t)(value) < 4096 ? (type)(intptr_t)(value) : M(family##_fromint)(value))
#define OUT(family, value)                                                                          \
    ((uintptr_t)(value) < 4096 ? (fint)(intptr_t)(value) : M(family##_toint)(value))

/* Arrays that are converted, on the stack where they are short. */
#define ARRAY(type, name, length)                                                                   \
    type name##_few[32], *name##_c = name##_few;                                                    \
    const long name##_count = (length);                                                             \
    if (name##_count > 32)                                                                          \
        name##_c = parnass_f_memory((size_t)name##_count * sizeof(type))
#define EACH(name) for (long i = 0; i < name##_count; i++)
#define RELEASE(name)                                                                               \
    do {                                                                                            \
        if (name##_c != name##_few)                                                                 \
            free(name##_c);                                                                         \
    } while (0)

/* The variables whose addresses say something. */
extern fint mpi_fortran_bottom_[], mpi_fortran_in_place_[], mpi_fortran_buffer_automatic_[];
extern fint mpi_fortran_status_ignore_[], mpi_fortran_statuses_ignore_[], mpi_fortran_errcodes_ignore_[];
extern fint mpi_fortran_unweighted_[], mpi_fortran_weights_empty_[];
extern char mpi_fortran_argv_null_[], mpi_fortran_argvs_null_[];

static inline void *BUFFER(void *address)
{
    if (address == (void *)mpi_fortran_bottom_)
        return MPI_BOTTOM;
    if (address == (void *)mpi_fortran_in_place_)
        return MPI_IN_PLACE;
    if (address == (void *)mpi_fortran_buffer_automatic_)
        return MPI_BUFFER_AUTOMATIC;
    return address;
}

#define IS_IN_PLACE(address) ((void *)(address) == (void *)mpi_fortran_in_place_)

static inline MPI_Status *STATUS(fint *status)
{
    return status == mpi_fortran_status_ignore_ || status == mpi_fortran_statuses_ignore_ ? MPI_STATUS_IGNORE
                                                                                            : (MPI_Status *)status;
}
#define STATUSES(statuses) STATUS(statuses)

static inline int *WEIGHTS(fint *weights)
{
    if (weights == mpi_fortran_unweighted_)
        return MPI_UNWEIGHTED;
    return weights == mpi_fortran_weights_empty_ ? MPI_WEIGHTS_EMPTY : weights;
}

/* LOGICALs: only the compiler knows which values they have. */
extern void parnass_f_logical_read_(const logical *from, fint *to);
extern void parnass_f_logical_write_(const fint *from, logical *to);

static inline int TRUTH(const logical *value)
{
    fint truth;
    parnass_f_logical_read_(value, &truth);
    return truth;
}

static inline void SET_LOGICAL(logical *value, int truth)
{
    const fint number = truth != 0;
    parnass_f_logical_write_(&number, value);
}

/* Memory, or the end of the program when there is none. */
HIDDEN void *parnass_f_memory(size_t bytes);
/* A string for C without the blanks at its end; free it. */
HIDDEN char *parnass_f_text(const char *text, size_t length);
/* The same without the blanks at its start, as the keys and values of MPI_Info are taken. */
HIDDEN char *parnass_f_word(const char *text, size_t length);
/* A string of C for Fortran: cut, or filled up with blanks. */
HIDDEN void parnass_f_give_text(char *text, size_t length, const char *from);
/* Adds one to each index that is not MPI_UNDEFINED. */
HIDDEN void parnass_f_from_one(fint *indices, fint count);
/* How many processes a call on `comm` exchanges data with, neighbors it has, and dimensions its topology. */
HIDDEN long parnass_f_peers(fint comm);
HIDDEN long parnass_f_neighbors(fint comm, int outgoing);
HIDDEN long parnass_f_dimensions(fint comm);
/* Tells the library what the compiler's types are; before the initialization, and once. */
HIDDEN void parnass_f_describe(void);

/* Cells for attributes that Fortran sets: C gets their addresses. */
HIDDEN void *parnass_f_new_cell(MPI_Aint value);
HIDDEN void parnass_f_free_cell(void *cell);
HIDDEN int parnass_f_is_cell(const void *address);
/* What Fortran gets: the content of a cell, or an address that C has set. */
HIDDEN MPI_Aint parnass_f_attribute(void *held);
/* The same, where the keyval may be one of MPI's own. */
HIDDEN MPI_Aint parnass_f_predefined_attribute(fint keyval, void *held);

/* The functions that MPI predefines; a program passes them, and may call them. */
void mpi_comm_null_copy_fn_(fint *, fint *, MPI_Aint *, MPI_Aint *, MPI_Aint *, logical *, fint *);
void mpi_comm_dup_fn_(fint *, fint *, MPI_Aint *, MPI_Aint *, MPI_Aint *, logical *, fint *);
void mpi_comm_null_delete_fn_(fint *, fint *, MPI_Aint *, MPI_Aint *, fint *);
void mpi_type_null_copy_fn_(fint *, fint *, MPI_Aint *, MPI_Aint *, MPI_Aint *, logical *, fint *);
void mpi_type_dup_fn_(fint *, fint *, MPI_Aint *, MPI_Aint *, MPI_Aint *, logical *, fint *);
void mpi_type_null_delete_fn_(fint *, fint *, MPI_Aint *, MPI_Aint *, fint *);
void mpi_win_null_copy_fn_(fint *, fint *, MPI_Aint *, MPI_Aint *, MPI_Aint *, logical *, fint *);
void mpi_win_dup_fn_(fint *, fint *, MPI_Aint *, MPI_Aint *, MPI_Aint *, logical *, fint *);
void mpi_win_null_delete_fn_(fint *, fint *, MPI_Aint *, MPI_Aint *, fint *);
void mpi_null_copy_fn_(fint *, fint *, fint *, fint *, fint *, logical *, fint *);
void mpi_dup_fn_(fint *, fint *, fint *, fint *, fint *, logical *, fint *);
void mpi_null_delete_fn_(fint *, fint *, fint *, fint *, fint *);
void mpi_conversion_fn_null_(void *, fint *, fint *, void *, MPI_Offset *, MPI_Aint *, fint *);
void mpi_conversion_fn_null_c_(void *, fint *, MPI_Count *, void *, MPI_Offset *, MPI_Aint *, fint *);

#ifdef PARNASS_DESCRIPTORS

/* Buffers that are array sections with gaps; in sections.c. */
enum { READ = 1, WRITE = 2, NONBLOCKING = 4, DESCRIBED = 8 };

/* What takes the place of the arguments. */
struct parnass_section {
    void *address;
    fint count;
    MPI_Count count_c;
    fint datatype;
    MPI_Datatype made;         /* to be freed, or 0 */
    struct parnass_copy *copy; /* or 0 */
    CFI_cdesc_t *array;
};

HIDDEN fint parnass_f_open(struct parnass_section *section, const char *procedure, const char *argument,
                           CFI_cdesc_t *array, int how, MPI_Count count, fint datatype);
/* Says how a partitioned operation divides the buffer. */
HIDDEN void parnass_f_partition(struct parnass_section *section, fint partitions, MPI_Count count, fint datatype);
/* After the call, whose operation is complete; or goes on until the request is, or the split operation on the file. */
HIDDEN void parnass_f_close(struct parnass_section *section);
HIDDEN fint parnass_f_close_later(struct parnass_section *section, fint code, fint *request);
HIDDEN fint parnass_f_close_split(struct parnass_section *section, fint code, fint file);
HIDDEN void parnass_f_end_split(fint file);

/* Whether the elements of an array lie next to each other. */
static inline int IS_DENSE(const CFI_cdesc_t *array)
{
    if (array->rank == 0 || array->base_addr == NULL)
        return 1;
    size_t expected = array->elem_len;
    int dense = 1;
    for (int place = 0; place < array->rank; place++) {
        const CFI_index_t extent = array->dim[place].extent;
        if (extent == 0)
            return 1;
        if (extent < 0) /* of assumed size */
            return dense;
        if (extent > 1 && (size_t)array->dim[place].sm != expected)
            dense = 0;
        expected *= (size_t)extent;
    }
    return dense;
}

#endif

#endif
