/* MPI 5.0, chapters 9, 11, 15, 19 and 20: handles as integers, what the ABI tells of itself, the machine's resources, hints from a
 * command line, errors of a session. */
#include "../programs/check.h"

#define ROUND_TRIP(type, name, handle)                                                              \
    do {                                                                                            \
        type before_ = (handle), after_ = MPI_##name##_fromint(MPI_##name##_toint(before_));        \
        CHECK(before_ == after_, #name " of " #handle " came back as another handle");              \
    } while (0)

static void nothing(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)in;
    (void)inout;
    (void)length;
    (void)type;
}

static void handles(void)
{
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Group group;
    MPI_Info info;
    MPI_Win window;
    MPI_Request request;
    MPI_Errhandler handler;
    MPI_Session session;
    MPI_Message message;
    MPI_Status status;
    MPI_Op op;
    MPI_File file;
    int number = 0;
    ROUND_TRIP(MPI_Comm, Comm, MPI_COMM_WORLD);
    ROUND_TRIP(MPI_Comm, Comm, MPI_COMM_NULL);
    ROUND_TRIP(MPI_Datatype, Type, MPI_DOUBLE);
    ROUND_TRIP(MPI_Op, Op, MPI_SUM);
    ROUND_TRIP(MPI_Errhandler, Errhandler, MPI_ERRORS_RETURN);
    ROUND_TRIP(MPI_Group, Group, MPI_GROUP_EMPTY);
    ROUND_TRIP(MPI_Info, Info, MPI_INFO_ENV);
    ROUND_TRIP(MPI_Message, Message, MPI_MESSAGE_NO_PROC);
    ROUND_TRIP(MPI_Request, Request, MPI_REQUEST_NULL);
    ROUND_TRIP(MPI_Session, Session, MPI_SESSION_NULL);
    ROUND_TRIP(MPI_File, File, MPI_FILE_NULL);
    ROUND_TRIP(MPI_Win, Win, MPI_WIN_NULL);
    /* Predefined handles have the numbers of the ABI. */
    CHECK_EQUAL(MPI_Comm_toint(MPI_COMM_WORLD), (intptr_t)MPI_COMM_WORLD);
    CHECK_EQUAL(MPI_Type_toint(MPI_INT), (intptr_t)MPI_INT);
    /* Names of before MPI 5.0, which clients use and mpi.h has too. */
    MPI_Fint integer = MPI_Comm_c2f(MPI_COMM_SELF), integers[sizeof status / sizeof(MPI_Fint)];
    CHECK(MPI_Comm_f2c(integer) == MPI_COMM_SELF, "the communicator of %d", integer);
    SUCCEEDS(MPI_Sendrecv(&integer, 1, MPI_INT, 0, 7, &number, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &status));
    SUCCEEDS(MPI_Status_c2f(&status, integers));
    memset(&status, 0xff, sizeof status);
    SUCCEEDS(MPI_Status_f2c(integers, &status));
    CHECK_EQUAL(status.MPI_TAG, 7);

    SUCCEEDS(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    ROUND_TRIP(MPI_Comm, Comm, comm);
    SUCCEEDS(MPI_Comm_group(comm, &group));
    ROUND_TRIP(MPI_Group, Group, group);
    SUCCEEDS(MPI_Group_free(&group));
    SUCCEEDS(MPI_Type_contiguous(3, MPI_INT, &type));
    ROUND_TRIP(MPI_Datatype, Type, type);
    SUCCEEDS(MPI_Type_free(&type));
    SUCCEEDS(MPI_Info_create(&info));
    ROUND_TRIP(MPI_Info, Info, info);
    SUCCEEDS(MPI_Info_free(&info));
    SUCCEEDS(MPI_Win_create(&number, sizeof number, 1, MPI_INFO_NULL, comm, &window));
    ROUND_TRIP(MPI_Win, Win, window);
    SUCCEEDS(MPI_Win_free(&window));
    SUCCEEDS(MPI_Comm_get_errhandler(comm, &handler));
    ROUND_TRIP(MPI_Errhandler, Errhandler, handler);
    SUCCEEDS(MPI_Errhandler_free(&handler));
    SUCCEEDS(MPI_Op_create(nothing, 1, &op));
    ROUND_TRIP(MPI_Op, Op, op);
    SUCCEEDS(MPI_Op_free(&op));
    SUCCEEDS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    ROUND_TRIP(MPI_Session, Session, session);
    SUCCEEDS(MPI_Session_finalize(&session));
    SUCCEEDS(MPI_Isend(&(int){5}, 1, MPI_INT, 0, 0, comm, &request));
    ROUND_TRIP(MPI_Request, Request, request);
    SUCCEEDS(MPI_Mprobe(0, 0, comm, &message, &status));
    ROUND_TRIP(MPI_Message, Message, message);
    message = MPI_Message_fromint(MPI_Message_toint(message));
    SUCCEEDS(MPI_Mrecv(&number, 1, MPI_INT, &message, &status));
    CHECK_EQUAL(number, 5);
    SUCCEEDS(MPI_Wait(&request, &status));
    SUCCEEDS(MPI_File_open(comm, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    ROUND_TRIP(MPI_File, File, file);
    SUCCEEDS(MPI_File_close(&file));
    SUCCEEDS(MPI_Comm_free(&comm));
}

/* Every key of an info has a value. */
static int keys_of(MPI_Info info)
{
    int keys;
    SUCCEEDS(MPI_Info_get_nkeys(info, &keys));
    for (int index = 0; index < keys; index++) {
        char key[MPI_MAX_INFO_KEY + 1], value[256];
        int length = sizeof value, flag;
        SUCCEEDS(MPI_Info_get_nthkey(info, index, key));
        SUCCEEDS(MPI_Info_get_string(info, key, &length, value, &flag));
        CHECK(flag, "key %s has no value", key);
    }
    return keys;
}

static void infos(void)
{
    MPI_Info info;
    char value[256];
    int length = sizeof value, flag, major = -1, minor = -1;
    SUCCEEDS(MPI_Abi_get_version(&major, &minor));
    CHECK(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION, "ABI %d.%d", major, minor);
    SUCCEEDS(MPI_Abi_get_info(&info));
    SUCCEEDS(MPI_Info_get_string(info, "mpi_aint_size", &length, value, &flag));
    CHECK(flag && atoi(value) == sizeof(MPI_Aint), "mpi_aint_size is %s", flag ? value : "missing");
    SUCCEEDS(MPI_Info_free(&info));
    SUCCEEDS(MPI_Get_hw_resource_info(&info));
    keys_of(info);
    SUCCEEDS(MPI_Info_free(&info));
    char *words[] = {"program", "one", "two", NULL};
    SUCCEEDS(MPI_Info_create_env(3, words, &info));
    length = sizeof value;
    SUCCEEDS(MPI_Info_get_string(info, "command", &length, value, &flag));
    CHECK(!flag || strcmp(value, "program") == 0, "command is %s", value);
    keys_of(info);
    SUCCEEDS(MPI_Info_free(&info));
    SUCCEEDS(MPI_Pcontrol(1));
}

/* What a Fortran library tells of itself can be told once. */
static void fortran_side(void)
{
    MPI_Info told, found;
    char value[64];
    int length = sizeof value, flag, is_set = -1;
    int32_t yes = 1, no = 0, found_yes = -1, found_no = -1;
    SUCCEEDS(MPI_Abi_get_fortran_info(&found));
    CHECK(found == MPI_INFO_NULL, "nothing has been told yet");
    SUCCEEDS(MPI_Info_create(&told));
    SUCCEEDS(MPI_Info_set(told, "mpi_integer_size", "4"));
    SUCCEEDS(MPI_Abi_set_fortran_info(told));
    CHECK_EQUAL(MPI_Abi_set_fortran_info(told), MPI_ERR_ABI);
    SUCCEEDS(MPI_Info_free(&told));
    SUCCEEDS(MPI_Abi_get_fortran_info(&found));
    SUCCEEDS(MPI_Info_get_string(found, "mpi_integer_size", &length, value, &flag));
    CHECK(flag && strcmp(value, "4") == 0, "mpi_integer_size");
    SUCCEEDS(MPI_Info_free(&found));

    SUCCEEDS(MPI_Abi_get_fortran_booleans(sizeof yes, &found_yes, &found_no, &is_set));
    CHECK_EQUAL(is_set, 0);
    SUCCEEDS(MPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no));
    CHECK_EQUAL(MPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no), MPI_ERR_ABI);
    SUCCEEDS(MPI_Abi_get_fortran_booleans(sizeof yes, &found_yes, &found_no, &is_set));
    CHECK(is_set && found_yes == 1 && found_no == 0, "%d: %d, %d", is_set, found_yes, found_no);
}

static int called;

static void handle_session(MPI_Session *session, int *code, ...)
{
    (void)session;
    called = *code;
}

static void session_errors(void)
{
    MPI_Session session;
    MPI_Errhandler handler, found;
    SUCCEEDS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    SUCCEEDS(MPI_Session_create_errhandler(handle_session, &handler));
    SUCCEEDS(MPI_Session_set_errhandler(session, handler));
    SUCCEEDS(MPI_Session_get_errhandler(session, &found));
    CHECK(found == handler, "the error handler of a session");
    SUCCEEDS(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
    CHECK_EQUAL(called, MPI_ERR_OTHER);
    SUCCEEDS(MPI_Errhandler_free(&found));
    SUCCEEDS(MPI_Errhandler_free(&handler));
    SUCCEEDS(MPI_Session_finalize(&session));
}

static void fortran_types(void)
{
    MPI_Datatype type;
    int size = -1;
    SUCCEEDS(MPI_Type_create_f90_integer(9, &type));
    SUCCEEDS(MPI_Type_size(type, &size));
    CHECK_EQUAL(size, 4);
    SUCCEEDS(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &type));
    SUCCEEDS(MPI_Type_size(type, &size));
    CHECK_EQUAL(size, 8);
    SUCCEEDS(MPI_Type_create_f90_complex(6, 30, &type));
    SUCCEEDS(MPI_Type_size(type, &size));
    CHECK_EQUAL(size, 8);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    handles();
    infos();
    session_errors();
    fortran_types();
    fortran_side();
    return check_end("chapter_20_abi");
}
