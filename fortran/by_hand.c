/* by_hand.c: the Fortran procedures whose bodies are more than conversions of arguments; a part of glue.c. */
#include "support.h"

/* ---- Start and end ---- */

WEAK void F(init)(fint *ierror)
{
    parnass_f_describe();
    int code = M(Init)(NULL, NULL);
    DONE(code);
}

WEAK void F(init_thread)(fint *required, fint *provided, fint *ierror)
{
    parnass_f_describe();
    int code = M(Init_thread)(NULL, NULL, *required, provided);
    DONE(code);
}

WEAK void F(session_init)(fint *info, fint *errhandler, fint *session, fint *ierror)
{
    parnass_f_describe();
    MPI_Session session_c = MPI_SESSION_NULL;
    int code =
        M(Session_init)(IN(MPI_Info, Info, *info), IN(MPI_Errhandler, Errhandler, *errhandler), &session_c);
    *session = OUT(Session, session_c);
    DONE(code);
}

WEAK void F(pcontrol)(fint *level)
{
    M(Pcontrol)(*level);
}

WEAK void F(f_sync_reg)(void *buf)
{
    (void)buf; /* The call itself is what the compiler cannot look behind. */
}

/* ---- Strings whose length is an argument: in C it counts the null at the end ---- */

WEAK void F(info_create_env)(fint *info, fint *ierror)
{
    MPI_Info info_c = MPI_INFO_NULL;
    int code = M(Info_create_env)(0, NULL, &info_c);
    *info = OUT(Info, info_c);
    DONE(code);
}

WEAK void F(info_get)(fint *info, char *key, fint *valuelen, char *value, logical *flag, fint *ierror, flength key_length,
                      flength value_length)
{
    char *key_c = parnass_f_word(key, key_length);
    char *value_c = parnass_f_memory(*valuelen > 0 ? (size_t)*valuelen + 1 : 1);
    int flag_c = 0;
    value_c[0] = 0;
    int code = M(Info_get)(IN(MPI_Info, Info, *info), key_c, *valuelen, value_c, &flag_c);
    if (code == MPI_SUCCESS && flag_c)
        parnass_f_give_text(value, value_length, value_c);
    SET_LOGICAL(flag, flag_c);
    free(value_c);
    free(key_c);
    DONE(code);
}

WEAK void F(info_get_string)(fint *info, char *key, fint *buflen, char *value, logical *flag, fint *ierror,
                             flength key_length, flength value_length)
{
    char *key_c = parnass_f_word(key, key_length);
    int length = *buflen > 0 ? *buflen + 1 : *buflen, flag_c = 0;
    const int asks_for_value = length > 0;
    char *value_c = parnass_f_memory(asks_for_value ? (size_t)length : 1);
    value_c[0] = 0;
    int code = M(Info_get_string)(IN(MPI_Info, Info, *info), key_c, &length, value_c, &flag_c);
    if (code == MPI_SUCCESS && flag_c) {
        if (asks_for_value)
            parnass_f_give_text(value, value_length, value_c);
        *buflen = length - 1;
    }
    SET_LOGICAL(flag, flag_c);
    free(value_c);
    free(key_c);
    DONE(code);
}

WEAK void F(session_get_nth_pset)(fint *session, fint *info, fint *n, fint *pset_len, char *pset_name, fint *ierror,
                                  flength pset_name_length)
{
    int length = *pset_len > 0 ? *pset_len + 1 : *pset_len;
    const int asks_for_name = length > 0;
    char *name_c = parnass_f_memory(asks_for_name ? (size_t)length : 1);
    name_c[0] = 0;
    int code = M(Session_get_nth_pset)(IN(MPI_Session, Session, *session), IN(MPI_Info, Info, *info), *n, &length, name_c);
    if (code == MPI_SUCCESS) {
        if (asks_for_name)
            parnass_f_give_text(pset_name, pset_name_length, name_c);
        else
            *pset_len = length - 1;
    }
    free(name_c);
    DONE(code);
}

/* ---- Processes: arrays of strings end with a string of blanks ---- */

static int is_blank(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == ' ')
        length--;
    return length == 0;
}

/* The arguments that begin at `first` and lie `step` bytes apart. */
static char **arguments_of(const char *first, size_t step, size_t length)
{
    size_t count = 0;
    while (!is_blank(first + count * step, length))
        count++;
    char **list = parnass_f_memory((count + 1) * sizeof *list);
    for (size_t place = 0; place < count; place++)
        list[place] = parnass_f_text(first + place * step, length);
    list[count] = NULL;
    return list;
}

static void free_list(char **list)
{
    for (char **place = list; list && *place; place++)
        free(*place);
    free(list);
}

static int is_root(fint comm, fint root)
{
    int rank = -1;
    PMPI_Comm_rank(IN(MPI_Comm, Comm, comm), &rank);
    return rank == root;
}

static int *errcodes(fint *codes)
{
    return codes == mpi_fortran_errcodes_ignore_ ? MPI_ERRCODES_IGNORE : codes;
}

WEAK void F(comm_spawn)(char *command, char *argv, fint *maxprocs, fint *info, fint *root, fint *comm, fint *intercomm,
                        fint *array_of_errcodes, fint *ierror, flength command_length, flength argv_length)
{
    const int means = is_root(*comm, *root); /* Only there the first four arguments mean something. */
    char *command_c = means ? parnass_f_text(command, command_length) : NULL;
    char **argv_c = MPI_ARGV_NULL;
    if (means && argv != mpi_fortran_argv_null_)
        argv_c = arguments_of(argv, argv_length, argv_length);
    MPI_Comm intercomm_c = MPI_COMM_NULL;
    int code = M(Comm_spawn)(means ? command_c : "", argv_c, means ? *maxprocs : 0,
                             means ? IN(MPI_Info, Info, *info) : MPI_INFO_NULL, *root, IN(MPI_Comm, Comm, *comm),
                             &intercomm_c, errcodes(array_of_errcodes));
    *intercomm = OUT(Comm, intercomm_c);
    free(command_c);
    free_list(argv_c);
    DONE(code);
}

WEAK void F(comm_spawn_multiple)(fint *count, char *array_of_commands, char *array_of_argv, fint *array_of_maxprocs,
                                 fint *array_of_info, fint *root, fint *comm, fint *intercomm, fint *array_of_errcodes,
                                 fint *ierror, flength array_of_commands_length, flength array_of_argv_length)
{
    const int commands = is_root(*comm, *root) && *count > 0 ? *count : 0;
    const size_t command_length = array_of_commands_length, argument_length = array_of_argv_length;
    char **commands_c = parnass_f_memory((size_t)(commands + 1) * sizeof *commands_c);
    char ***argvs_c = MPI_ARGVS_NULL;
    MPI_Info *infos_c = parnass_f_memory((size_t)(commands + 1) * sizeof *infos_c);
    if (commands && array_of_argv != mpi_fortran_argvs_null_ && array_of_argv != mpi_fortran_argv_null_)
        argvs_c = parnass_f_memory((size_t)commands * sizeof *argvs_c);
    for (int place = 0; place < commands; place++) {
        commands_c[place] = parnass_f_text(array_of_commands + (size_t)place * command_length, command_length);
        infos_c[place] = IN(MPI_Info, Info, array_of_info[place]);
        /* The rows of array_of_argv(count, *). */
        if (argvs_c)
            argvs_c[place] = arguments_of(array_of_argv + (size_t)place * argument_length,
                                          (size_t)commands * argument_length, argument_length);
    }
    commands_c[commands] = NULL;
    MPI_Comm intercomm_c = MPI_COMM_NULL;
    int code = M(Comm_spawn_multiple)(*count, commands_c, argvs_c, array_of_maxprocs, infos_c, *root,
                                      IN(MPI_Comm, Comm, *comm), &intercomm_c, errcodes(array_of_errcodes));
    *intercomm = OUT(Comm, intercomm_c);
    for (int place = 0; argvs_c && place < commands; place++)
        free_list(argvs_c[place]);
    free(argvs_c);
    free_list(commands_c);
    free(infos_c);
    DONE(code);
}

/* ---- Attributes ----
 *
 * An attribute that Fortran sets is an integer; C gets the address of one. So each is kept in a cell, and what is no cell
 * was set by C: Fortran gets its address as an integer. The functions of a keyval of Fortran's are called by those below.
 */

typedef void copy_function(fint *object, fint *keyval, MPI_Aint *extra, MPI_Aint *in, MPI_Aint *out, logical *flag,
                           fint *ierror);
typedef void delete_function(fint *object, fint *keyval, MPI_Aint *value, MPI_Aint *extra, fint *ierror);
typedef void old_copy_function(fint *object, fint *keyval, fint *extra, fint *in, fint *out, logical *flag, fint *ierror);
typedef void old_delete_function(fint *object, fint *keyval, fint *value, fint *extra, fint *ierror);

/* What a keyval of Fortran's has for its extra state. It stays: attributes may outlive the keyval. */
struct keyval {
    parnass_function *copy, *delete;
    MPI_Aint extra;
    int is_old; /* of MPI_Keyval_create: its functions take INTEGERs */
};

static struct keyval *new_keyval(parnass_function *copy, parnass_function *delete, MPI_Aint extra, int is_old)
{
    struct keyval *made = parnass_f_memory(sizeof *made);
    *made = (struct keyval){copy, delete, extra, is_old};
    return made;
}

static int copy_attribute(fint object, fint keyval, struct keyval *of, void *in, void *out, int *flag)
{
    fint ierror = MPI_SUCCESS;
    MPI_Aint value = parnass_f_attribute(in), copied = 0;
    logical yes;
    *flag = 0;
    if (of->copy == (parnass_function *)mpi_comm_null_copy_fn_ || of->copy == (parnass_function *)mpi_type_null_copy_fn_ ||
        of->copy == (parnass_function *)mpi_win_null_copy_fn_ || of->copy == (parnass_function *)mpi_null_copy_fn_)
        return MPI_SUCCESS;
    if (of->copy == (parnass_function *)mpi_comm_dup_fn_ || of->copy == (parnass_function *)mpi_type_dup_fn_ ||
        of->copy == (parnass_function *)mpi_win_dup_fn_ || of->copy == (parnass_function *)mpi_dup_fn_) {
        *(void **)out = parnass_f_is_cell(in) ? parnass_f_new_cell(value) : in;
        *flag = 1;
        return MPI_SUCCESS;
    }
    SET_LOGICAL(&yes, 0);
    if (of->is_old) {
        fint extra = (fint)of->extra, old_in = (fint)value, old_out = 0;
        ((old_copy_function *)of->copy)(&object, &keyval, &extra, &old_in, &old_out, &yes, &ierror);
        copied = old_out;
    } else {
        ((copy_function *)of->copy)(&object, &keyval, &of->extra, &value, &copied, &yes, &ierror);
    }
    if (ierror == MPI_SUCCESS && TRUTH(&yes)) {
        *(void **)out = parnass_f_new_cell(copied);
        *flag = 1;
    }
    return ierror;
}

static int delete_attribute(fint object, fint keyval, struct keyval *of, void *held)
{
    fint ierror = MPI_SUCCESS;
    MPI_Aint value = parnass_f_attribute(held);
    if (of->delete == (parnass_function *)mpi_comm_null_delete_fn_ ||
        of->delete == (parnass_function *)mpi_type_null_delete_fn_ ||
        of->delete == (parnass_function *)mpi_win_null_delete_fn_ || of->delete == (parnass_function *)mpi_null_delete_fn_) {
        /* Nothing to call. */
    } else if (of->is_old) {
        fint extra = (fint)of->extra, old_value = (fint)value;
        ((old_delete_function *)of->delete)(&object, &keyval, &old_value, &extra, &ierror);
    } else {
        ((delete_function *)of->delete)(&object, &keyval, &value, &of->extra, &ierror);
    }
    if (ierror == MPI_SUCCESS)
        parnass_f_free_cell(held);
    return ierror;
}

#define ATTRIBUTES(type, family, lower)                                                                                \
    static int lower##_copy(type object, int keyval, void *extra, void *in, void *out, int *flag)                      \
    {                                                                                                                  \
        return copy_attribute(OUT(family, object), keyval, extra, in, out, flag);                                      \
    }                                                                                                                  \
    static int lower##_delete(type object, int keyval, void *value, void *extra)                                       \
    {                                                                                                                  \
        return delete_attribute(OUT(family, object), keyval, extra, value);                                            \
    }                                                                                                                  \
    WEAK void F(lower##_create_keyval)(parnass_function * copy, parnass_function * delete, fint * keyval,              \
                                       MPI_Aint * extra_state, fint * ierror)                                          \
    {                                                                                                                  \
        struct keyval *of = new_keyval(copy, delete, *extra_state, 0);                                                 \
        int code = M(family##_create_keyval)(lower##_copy, lower##_delete, keyval, of);                                \
        DONE(code);                                                                                                    \
    }                                                                                                                  \
    WEAK void F(lower##_set_attr)(fint * object, fint * keyval, MPI_Aint * attribute_val, fint * ierror)               \
    {                                                                                                                  \
        void *cell = parnass_f_new_cell(*attribute_val);                                                               \
        int code = M(family##_set_attr)(IN(type, family, *object), *keyval, cell);                                     \
        if (code != MPI_SUCCESS)                                                                                       \
            parnass_f_free_cell(cell);                                                                                 \
        DONE(code);                                                                                                    \
    }                                                                                                                  \
    WEAK void F(lower##_get_attr)(fint * object, fint * keyval, MPI_Aint * attribute_val, logical * flag, fint * ierror) \
    {                                                                                                                  \
        void *held = NULL;                                                                                             \
        int flag_c = 0;                                                                                                \
        int code = M(family##_get_attr)(IN(type, family, *object), *keyval, &held, &flag_c);                           \
        if (code == MPI_SUCCESS && flag_c)                                                                             \
            *attribute_val = parnass_f_predefined_attribute(*keyval, held);                                            \
        SET_LOGICAL(flag, flag_c);                                                                                     \
        DONE(code);                                                                                                    \
    }

ATTRIBUTES(MPI_Comm, Comm, comm)
ATTRIBUTES(MPI_Datatype, Type, type)
ATTRIBUTES(MPI_Win, Win, win)

WEAK void F(keyval_create)(parnass_function *copy_fn, parnass_function *delete_fn, fint *keyval, fint *extra_state,
                           fint *ierror)
{
    struct keyval *of = new_keyval(copy_fn, delete_fn, *extra_state, 1);
    int code = M(Comm_create_keyval)(comm_copy, comm_delete, keyval, of);
    DONE(code);
}

WEAK void F(attr_put)(fint *comm, fint *keyval, fint *attribute_val, fint *ierror)
{
    MPI_Aint value = *attribute_val;
    F(comm_set_attr)(comm, keyval, &value, ierror);
}

WEAK void F(attr_get)(fint *comm, fint *keyval, fint *attribute_val, logical *flag, fint *ierror)
{
    MPI_Aint value = 0;
    fint code = MPI_SUCCESS;
    F(comm_get_attr)(comm, keyval, &value, flag, &code);
    if (code == MPI_SUCCESS && TRUTH(flag))
        *attribute_val = (fint)value;
    DONE(code);
}

/* ---- Generalized requests ---- */

struct generalized {
    void (*query)(MPI_Aint *extra, fint *status, fint *ierror);
    void (*free)(MPI_Aint *extra, fint *ierror);
    void (*cancel)(MPI_Aint *extra, logical *complete, fint *ierror);
    MPI_Aint extra;
};

static int generalized_query(void *state, MPI_Status *status)
{
    struct generalized *of = state;
    fint ierror = MPI_SUCCESS;
    of->query(&of->extra, (fint *)status, &ierror);
    return ierror;
}

static int generalized_free(void *state)
{
    struct generalized *of = state;
    fint ierror = MPI_SUCCESS;
    of->free(&of->extra, &ierror);
    free(of);
    return ierror;
}

static int generalized_cancel(void *state, int complete)
{
    struct generalized *of = state;
    fint ierror = MPI_SUCCESS;
    logical complete_f;
    SET_LOGICAL(&complete_f, complete);
    of->cancel(&of->extra, &complete_f, &ierror);
    return ierror;
}

WEAK void F(grequest_start)(parnass_function *query_fn, parnass_function *free_fn, parnass_function *cancel_fn,
                            MPI_Aint *extra_state, fint *request, fint *ierror)
{
    struct generalized *of = parnass_f_memory(sizeof *of);
    of->query = (__typeof__(of->query))query_fn;
    of->free = (__typeof__(of->free))free_fn;
    of->cancel = (__typeof__(of->cancel))cancel_fn;
    of->extra = *extra_state;
    MPI_Request request_c = MPI_REQUEST_NULL;
    int code = M(Grequest_start)(generalized_query, generalized_free, generalized_cancel, of, &request_c);
    *request = OUT(Request, request_c);
    if (code != MPI_SUCCESS)
        free(of);
    DONE(code);
}

/* ---- Data representations: what is registered stays ---- */

struct representation {
    parnass_function *read, *write, *extent;
    MPI_Aint extra;
};

typedef void conversion(void *userbuf, fint *datatype, fint *count, void *filebuf, MPI_Offset *position, MPI_Aint *extra,
                        fint *ierror);
typedef void conversion_c(void *userbuf, fint *datatype, MPI_Count *count, void *filebuf, MPI_Offset *position,
                          MPI_Aint *extra, fint *ierror);
typedef void extent_function(fint *datatype, MPI_Aint *extent, MPI_Aint *extra, fint *ierror);

#define CONVERTS(name, member, function, count_type, count_f)                                                          \
    static int name(void *userbuf, MPI_Datatype datatype, count_type count, void *filebuf, MPI_Offset position,        \
                    void *state)                                                                                       \
    {                                                                                                                  \
        struct representation *of = state;                                                                             \
        fint ierror = MPI_SUCCESS, datatype_f = OUT(Type, datatype);                                                   \
        count_f number = count;                                                                                        \
        ((function *)of->member)(userbuf, &datatype_f, &number, filebuf, &position, &of->extra, &ierror);              \
        return ierror;                                                                                                 \
    }

CONVERTS(converts_read, read, conversion, int, fint)
CONVERTS(converts_write, write, conversion, int, fint)
CONVERTS(converts_read_c, read, conversion_c, MPI_Count, MPI_Count)
CONVERTS(converts_write_c, write, conversion_c, MPI_Count, MPI_Count)

static int tells_extent(MPI_Datatype datatype, MPI_Aint *extent, void *state)
{
    struct representation *of = state;
    fint ierror = MPI_SUCCESS, datatype_f = OUT(Type, datatype);
    ((extent_function *)of->extent)(&datatype_f, extent, &of->extra, &ierror);
    return ierror;
}

#define REGISTER(lower, name, type, null_f, null_c, reads, writes)                                                     \
    WEAK void F(lower)(char *datarep, parnass_function *read_fn, parnass_function *write_fn,                           \
                       parnass_function *extent_fn, MPI_Aint *extra_state, fint *ierror, flength datarep_length)       \
    {                                                                                                                  \
        char *datarep_c = parnass_f_text(datarep, datarep_length);                                                     \
        struct representation *of = parnass_f_memory(sizeof *of);                                                      \
        *of = (struct representation){read_fn, write_fn, extent_fn, *extra_state};                                     \
        int code = M(name)(datarep_c, read_fn == (parnass_function *)null_f ? null_c : (type *)reads,                  \
                           write_fn == (parnass_function *)null_f ? null_c : (type *)writes, tells_extent, of);        \
        free(datarep_c);                                                                                               \
        DONE(code);                                                                                                    \
    }

REGISTER(register_datarep, Register_datarep, MPI_Datarep_conversion_function, mpi_conversion_fn_null_,
         MPI_CONVERSION_FN_NULL, converts_read, converts_write)
REGISTER(register_datarep_c, Register_datarep_c, MPI_Datarep_conversion_function_c, mpi_conversion_fn_null_c_,
         MPI_CONVERSION_FN_NULL_C, converts_read_c, converts_write_c)
