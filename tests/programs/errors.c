/* A bad argument gives an error of its class, and never a crash: under MPI_ERRORS_RETURN, for stale, null and random handles too. */
#include "check.h"

static int failures;

/* With the argument `gentle`, only what every library survives: no stale and no random handle. */
static int gentle;

static void expect(int code, int class_, const char *what, int line)
{
    int found = MPI_SUCCESS, length = 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    if (code != MPI_SUCCESS) {
        MPI_Error_class(code, &found);
        MPI_Error_string(code, text, &length);
        if (length <= 0 || length != (int)strlen(text)) {
            fprintf(stderr, "line %d: %s: no error text\n", line, what);
            failures++;
        }
    }
    if (found != class_) {
        fprintf(stderr, "line %d: %s: class %d, expected %d (%s)\n", line, what, found, class_, text);
        failures++;
    }
}
#define FAILS(class_, call) expect(call, class_, #call, __LINE__)
#define FAILS_HARD(class_, call) (gentle ? (void)0 : expect(call, class_, #call, __LINE__))

static int handler_calls, handler_code, handler_mends;
static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    handler_calls++;
    handler_code = *code;
    if (handler_mends)
        *code = MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    gentle = argc > 1 && strcmp(argv[1], "gentle") == 0;
    MPI_Comm world = MPI_COMM_WORLD, garbage_comm = (MPI_Comm)(uintptr_t)0xdeadbee0, freed_comm, stale_comm;
    int value = 0, flag, count;
    MPI_Request request, none = MPI_REQUEST_NULL;
    MPI_Status status;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);

    FAILS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_INT, check_size, 0, world));
    FAILS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_INT, -77, 0, world));
    FAILS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, world));
    FAILS(MPI_ERR_RANK, MPI_Recv(&value, 1, MPI_INT, check_size + 3, 0, world, &status));
    FAILS(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_INT, 0, -1, world));
    FAILS(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_INT, 0, MPI_ANY_TAG, world));
    FAILS(MPI_ERR_TAG, MPI_Recv(&value, 1, MPI_INT, 0, -55, world, &status));
    FAILS(MPI_ERR_COUNT, MPI_Send(&value, -1, MPI_INT, 0, 0, world));
    FAILS(MPI_ERR_COUNT, MPI_Irecv(&value, -2, MPI_INT, 0, 0, world, &request));
    FAILS(MPI_ERR_TYPE, MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, world));
    FAILS_HARD(MPI_ERR_TYPE, MPI_Send(&value, 1, (MPI_Datatype)(uintptr_t)0x12345670, 0, 0, world));
    FAILS(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
    FAILS_HARD(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 0, garbage_comm));
    FAILS_HARD(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 0, (MPI_Comm)NULL));
    FAILS(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));
    FAILS_HARD(MPI_ERR_COMM, MPI_Comm_size(garbage_comm, &count));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(&value, 1, MPI_INT, check_size, world));
    FAILS(MPI_ERR_ROOT, MPI_Reduce(&value, &count, 1, MPI_INT, MPI_SUM, -9, world));
    FAILS(MPI_ERR_OP, MPI_Allreduce(&value, &count, 1, MPI_INT, MPI_OP_NULL, world));
    FAILS_HARD(MPI_ERR_OP, MPI_Allreduce(&value, &count, 1, MPI_INT, (MPI_Op)(uintptr_t)0x7777770, world));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(&value, &value, 1, MPI_INT, MPI_SUM, world));

    /* A handle used after it was freed. */
    MPI_Comm_dup(MPI_COMM_SELF, &freed_comm);
    stale_comm = freed_comm;
    MPI_Comm_free(&freed_comm);
    CHECK(freed_comm == MPI_COMM_NULL, "a freed communicator is null");
    FAILS_HARD(MPI_ERR_COMM, MPI_Comm_size(stale_comm, &count));
    FAILS_HARD(MPI_ERR_COMM, MPI_Comm_free(&stale_comm));
    MPI_Datatype vector, stale_type;
    MPI_Type_vector(3, 1, 2, MPI_INT, &vector);
    int three[9] = {0};
    FAILS(MPI_ERR_TYPE, MPI_Send(three, 1, vector, MPI_PROC_NULL, 0, world)); /* never committed */
    MPI_Type_commit(&vector);
    FAILS(MPI_SUCCESS, MPI_Send(three, 1, vector, MPI_PROC_NULL, 0, world));
    stale_type = vector;
    MPI_Type_free(&vector);
    FAILS_HARD(MPI_ERR_TYPE, MPI_Type_size(stale_type, &count));
    FAILS_HARD(MPI_ERR_TYPE, MPI_Send(three, 1, stale_type, MPI_PROC_NULL, 0, world));
    MPI_Datatype integer = MPI_INT;
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&integer));
    MPI_Group group, stale_group;
    MPI_Comm_group(world, &group);
    stale_group = group;
    MPI_Group_free(&group);
    FAILS_HARD(MPI_ERR_GROUP, MPI_Group_size(stale_group, &count));
    FAILS(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &count));
    MPI_Info info, stale_info;
    MPI_Info_create(&info);
    FAILS(MPI_ERR_INFO_NOKEY, MPI_Info_delete(info, "not there"));
    stale_info = info;
    MPI_Info_free(&info);
    FAILS_HARD(MPI_ERR_INFO, MPI_Info_get_nkeys(stale_info, &count));
    MPI_Op operator_ = MPI_SUM;
    FAILS(MPI_ERR_OP, MPI_Op_free(&operator_));
    MPI_Request stale_request;
    MPI_Recv_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    stale_request = request;
    MPI_Request_free(&request);
    FAILS_HARD(MPI_ERR_REQUEST, MPI_Wait(&stale_request, &status));
    request = (MPI_Request)(uintptr_t)0x3331110;
    FAILS_HARD(MPI_ERR_REQUEST, MPI_Test(&request, &flag, &status));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&none));
    int key = MPI_KEYVAL_INVALID;
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(world, key, &value));
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&key));
    FAILS(MPI_ERR_ARG, MPI_Type_vector(-1, 1, 1, MPI_INT, &vector) == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_ARG);

    /* Random handles of every class, many of them: none may be taken for a live object. */
    uint64_t seed = 42;
    for (int round = 0; round < (gentle ? 0 : 2000); round++) {
        seed = check_mix(seed);
        uintptr_t bits = (uintptr_t)(seed >> (seed % 40)) | 0x1000;
        int code;
        if ((code = MPI_Comm_size((MPI_Comm)bits, &count)) == MPI_SUCCESS)
            FAILS(MPI_ERR_COMM, code);
        if ((code = MPI_Type_size((MPI_Datatype)bits, &count)) == MPI_SUCCESS)
            FAILS(MPI_ERR_TYPE, code);
        if ((code = MPI_Group_size((MPI_Group)bits, &count)) == MPI_SUCCESS)
            FAILS(MPI_ERR_GROUP, code);
        if ((code = MPI_Op_commutative((MPI_Op)bits, &count)) == MPI_SUCCESS)
            FAILS(MPI_ERR_OP, code);
        if ((code = MPI_Info_get_nkeys((MPI_Info)bits, &count)) == MPI_SUCCESS)
            FAILS(MPI_ERR_INFO, code);
        request = (MPI_Request)bits;
        if ((code = MPI_Test(&request, &flag, &status)) == MPI_SUCCESS)
            FAILS(MPI_ERR_REQUEST, code);
        MPI_Errhandler any = (MPI_Errhandler)bits;
        if ((code = MPI_Errhandler_free(&any)) == MPI_SUCCESS)
            FAILS(MPI_ERR_ERRHANDLER, code);
    }

    /* User handlers, classes and codes. */
    MPI_Errhandler mine;
    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_set_errhandler(world, mine);
    MPI_Send(&value, 1, MPI_INT, check_size, 0, world);
    CHECK_EQUAL(handler_calls, 1);
    int class_;
    MPI_Error_class(handler_code, &class_);
    CHECK_EQUAL(class_, MPI_ERR_RANK);
    handler_mends = 1;
    CHECK_EQUAL(MPI_Send(&value, 1, MPI_INT, check_size, 0, world), MPI_SUCCESS);
    handler_mends = 0;
    CHECK_EQUAL(MPI_Send(&value, 1, MPI_INT, check_size, 0, world), MPI_ERR_RANK);
    handler_calls = 1;
    int user_class, user_code, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Add_error_class(&user_class);
    MPI_Add_error_code(user_class, &user_code);
    MPI_Add_error_string(user_code, "the well is dry");
    MPI_Error_string(user_code, text, &length);
    CHECK(strcmp(text, "the well is dry") == 0, "got '%s'", text);
    MPI_Error_class(user_code, &class_);
    CHECK_EQUAL(class_, user_class);
    MPI_Comm_call_errhandler(world, user_code);
    CHECK_EQUAL(handler_calls, 2);
    CHECK_EQUAL(handler_code, user_code);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&mine);

    CHECK(failures == 0, "%d calls did not fail as they should", failures);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
    return check_end("errors");
}
