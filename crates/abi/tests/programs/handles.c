/* Garbage, null, freed and wrong handles of every class give an error of the class, never a crash. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void check(int code, int wanted, const char *what, uintptr_t handle)
{
    int class = -1;
    MPI_Error_class(code, &class);
    if (class != wanted) {
        if (failures < 20) printf("%s with handle %#lx: error class %d, not %d\n", what, (unsigned long)handle, class, wanted);
        failures++;
    }
}

static int comm(uintptr_t h) { int n; return MPI_Comm_size((MPI_Comm)h, &n); }
static int comm_free(uintptr_t h) { MPI_Comm c = (MPI_Comm)h; return MPI_Comm_free(&c); }
static int send_comm(uintptr_t h) { int n = 0; return MPI_Send(&n, 1, MPI_INT, MPI_PROC_NULL, 0, (MPI_Comm)h); }
static int type(uintptr_t h) { int n; return MPI_Type_size((MPI_Datatype)h, &n); }
static int send_type(uintptr_t h) { int n = 0; return MPI_Send(&n, 1, (MPI_Datatype)h, MPI_PROC_NULL, 0, MPI_COMM_WORLD); }
static int bcast_type(uintptr_t h) { int n = 0; return MPI_Bcast(&n, 1, (MPI_Datatype)h, 0, MPI_COMM_WORLD); }
static int group(uintptr_t h) { int n; return MPI_Group_size((MPI_Group)h, &n); }
static int op(uintptr_t h) { int n; return MPI_Op_commutative((MPI_Op)h, &n); }
static int allreduce_op(uintptr_t h) { int a = 0, b; return MPI_Allreduce(&a, &b, 1, MPI_INT, (MPI_Op)h, MPI_COMM_WORLD); }
static int errhandler(uintptr_t h) { return MPI_Comm_set_errhandler(MPI_COMM_SELF, (MPI_Errhandler)h); }
static int errhandler_free(uintptr_t h) { MPI_Errhandler e = (MPI_Errhandler)h; return MPI_Errhandler_free(&e); }
static int info(uintptr_t h) { int n; return MPI_Info_get_nkeys((MPI_Info)h, &n); }
static int request(uintptr_t h) { MPI_Request r = (MPI_Request)h; return MPI_Wait(&r, MPI_STATUS_IGNORE); }
static int request_all(uintptr_t h) { MPI_Request r = (MPI_Request)h; return MPI_Waitall(1, &r, MPI_STATUSES_IGNORE); }
static int request_free(uintptr_t h) { MPI_Request r = (MPI_Request)h; return MPI_Request_free(&r); }
static int message(uintptr_t h) { MPI_Message m = (MPI_Message)h; int n; return MPI_Mrecv(&n, 1, MPI_INT, &m, MPI_STATUS_IGNORE); }
static int win(uintptr_t h) { return MPI_Win_fence(0, (MPI_Win)h); }
static int file(uintptr_t h) { return MPI_File_sync((MPI_File)h); }
static int session(uintptr_t h) { MPI_Info i; return MPI_Session_get_info((MPI_Session)h, &i); }

/* Each class with its null handle, and whether a call takes the null handle as valid. */
static const struct test {
    const char *name;
    int (*call)(uintptr_t);
    int class;
    uintptr_t null;
    int takes_null;
} tests[] = {
    {"MPI_Comm_size", comm, MPI_ERR_COMM, (uintptr_t)MPI_COMM_NULL, 0},
    {"MPI_Comm_free", comm_free, MPI_ERR_COMM, (uintptr_t)MPI_COMM_NULL, 0},
    {"MPI_Send, communicator", send_comm, MPI_ERR_COMM, (uintptr_t)MPI_COMM_NULL, 0},
    {"MPI_Type_size", type, MPI_ERR_TYPE, (uintptr_t)MPI_DATATYPE_NULL, 0},
    {"MPI_Send, datatype", send_type, MPI_ERR_TYPE, (uintptr_t)MPI_DATATYPE_NULL, 0},
    {"MPI_Bcast, datatype", bcast_type, MPI_ERR_TYPE, (uintptr_t)MPI_DATATYPE_NULL, 0},
    {"MPI_Group_size", group, MPI_ERR_GROUP, (uintptr_t)MPI_GROUP_NULL, 0},
    {"MPI_Op_commutative", op, MPI_ERR_OP, (uintptr_t)MPI_OP_NULL, 0},
    {"MPI_Allreduce, operation", allreduce_op, MPI_ERR_OP, (uintptr_t)MPI_OP_NULL, 0},
    {"MPI_Comm_set_errhandler", errhandler, MPI_ERR_ERRHANDLER, (uintptr_t)MPI_ERRHANDLER_NULL, 0},
    {"MPI_Errhandler_free", errhandler_free, MPI_ERR_ERRHANDLER, (uintptr_t)MPI_ERRHANDLER_NULL, 0},
    {"MPI_Info_get_nkeys", info, MPI_ERR_INFO, (uintptr_t)MPI_INFO_NULL, 0},
    {"MPI_Wait", request, MPI_ERR_REQUEST, (uintptr_t)MPI_REQUEST_NULL, 1},
    {"MPI_Waitall", request_all, MPI_ERR_REQUEST, (uintptr_t)MPI_REQUEST_NULL, 1},
    {"MPI_Request_free", request_free, MPI_ERR_REQUEST, (uintptr_t)MPI_REQUEST_NULL, 0},
    {"MPI_Mrecv", message, MPI_ERR_REQUEST, (uintptr_t)MPI_MESSAGE_NULL, 0},
    {"MPI_Win_fence", win, MPI_ERR_WIN, (uintptr_t)MPI_WIN_NULL, 0},
    {"MPI_File_sync", file, MPI_ERR_FILE, (uintptr_t)MPI_FILE_NULL, 0},
    {"MPI_Session_get_info", session, MPI_ERR_SESSION, (uintptr_t)MPI_SESSION_NULL, 0},
};
enum { TESTS = sizeof tests / sizeof *tests };

static void user_function(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)len, (void)type;
}

static void user_errhandler(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);

    /* A freed handle of each class; those of the classes that cannot be made yet are left at 0. */
    MPI_Comm comm, freed_comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    freed_comm = comm;
    MPI_Comm_free(&comm);
    if (comm != MPI_COMM_NULL) printf("MPI_Comm_free left the handle\n"), failures++;
    MPI_Datatype type, freed_type;
    MPI_Type_contiguous(3, MPI_INT, &type);
    freed_type = type;
    check(MPI_Send(&failures, 0, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "an uncommitted datatype", (uintptr_t)type);
    MPI_Type_free(&type);
    MPI_Group world, group, freed_group;
    int zero = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &zero, &group);
    freed_group = group;
    MPI_Group_free(&group);
    if (world != freed_group) MPI_Group_free(&world);
    MPI_Op op, freed_op;
    MPI_Op_create(user_function, 1, &op);
    freed_op = op;
    MPI_Op_free(&op);
    MPI_Errhandler errhandler, freed_errhandler;
    MPI_Comm_create_errhandler(user_errhandler, &errhandler);
    freed_errhandler = errhandler;
    MPI_Errhandler_free(&errhandler);
    MPI_Info info, freed_info;
    MPI_Info_create(&info);
    freed_info = info;
    MPI_Info_free(&info);
    MPI_Request request, freed_request;
    int received;
    MPI_Irecv(&received, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request);
    freed_request = request;
    MPI_Send(&zero, 1, MPI_INT, 0, 5, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (request != MPI_REQUEST_NULL) printf("MPI_Wait left the handle\n"), failures++;
    MPI_Message message, freed_message;
    MPI_Request sending;
    MPI_Isend(&zero, 1, MPI_INT, 0, 6, MPI_COMM_SELF, &sending);
    MPI_Mprobe(0, 6, MPI_COMM_SELF, &message, MPI_STATUS_IGNORE);
    freed_message = message;
    MPI_Mrecv(&received, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&sending, MPI_STATUS_IGNORE);

    const struct { int class; uintptr_t handle; } freed[] = {
        {MPI_ERR_COMM, (uintptr_t)freed_comm},       {MPI_ERR_TYPE, (uintptr_t)freed_type},
        {MPI_ERR_GROUP, (uintptr_t)freed_group},     {MPI_ERR_OP, (uintptr_t)freed_op},
        {MPI_ERR_ERRHANDLER, (uintptr_t)freed_errhandler}, {MPI_ERR_INFO, (uintptr_t)freed_info},
        {MPI_ERR_REQUEST, (uintptr_t)freed_request}, {MPI_ERR_REQUEST, (uintptr_t)freed_message},
    };
    for (int t = 0; t < TESTS; t++) {
        for (unsigned f = 0; f < sizeof freed / sizeof *freed; f++)
            check(tests[t].call(freed[f].handle), tests[t].class, tests[t].name, freed[f].handle);
        if (tests[t].takes_null)
            check(tests[t].call(tests[t].null), MPI_SUCCESS, tests[t].name, tests[t].null);
        else
            check(tests[t].call(tests[t].null), tests[t].class, tests[t].name, tests[t].null);
        /* The null handles of the other classes, and handles of other classes that are valid. */
        for (int other = 0; other < TESTS; other++)
            if (tests[other].null != tests[t].null)
                check(tests[t].call(tests[other].null), tests[t].class, tests[t].name, tests[other].null);
        static const uintptr_t garbage[] = {
            0, 1, 2, 0x1f, 0x3e, 0x3ff, 0xfff, 0x1000, 0x1001, 0x12345678, 0x7fffffff, 0x80000000u, 0xffffffffu,
            (uintptr_t)0xdeadbeefcafe, (uintptr_t)1 << 40, UINTPTR_MAX, UINTPTR_MAX - 7, (uintptr_t)1 << 63,
        };
        for (unsigned g = 0; g < sizeof garbage / sizeof *garbage; g++)
            check(tests[t].call(garbage[g]), tests[t].class, tests[t].name, garbage[g]);
        uint64_t random = 88172645463325252u + t;
        for (int turn = 0; turn < 3000; turn++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            uintptr_t handle = turn % 3 == 0 ? (uintptr_t)random : turn % 3 == 1 ? random & 0x7fffffff : 0x1000 + (random & 0x7fff8000);
            check(tests[t].call(handle), tests[t].class, tests[t].name, handle);
        }
    }

    /* Handles that are alive go through an int and back; of the wrong class they are refused. */
    MPI_Comm dup;
    MPI_Comm_dup(MPI_COMM_SELF, &dup);
    if (MPI_Comm_toint(dup) < 4096) printf("a handle below 4096\n"), failures++;
    if (MPI_Comm_fromint(MPI_Comm_toint(dup)) != dup) printf("MPI_Comm_fromint\n"), failures++;
    if (MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) != MPI_COMM_WORLD) printf("MPI_COMM_WORLD\n"), failures++;
    for (int t = 3; t < TESTS; t++)
        check(tests[t].call((uintptr_t)dup), tests[t].class, tests[t].name, (uintptr_t)dup);
    MPI_Comm_free(&dup);

    /* The message names the call and the value. */
    char text[MPI_MAX_ERROR_STRING];
    int length;
    int code = MPI_Send(&zero, -3, MPI_INT, 0, 0, MPI_COMM_WORLD);
    check(code, MPI_ERR_COUNT, "a negative count", 0);
    MPI_Error_string(code, text, &length);
    if (!strstr(text, "MPI_Send") || !strstr(text, "-3") || length != (int)strlen(text))
        printf("the error text is '%s'\n", text), failures++;

    MPI_Finalize();
    printf(failures ? "handles: %d failures\n" : "handles: ok\n", failures);
    return failures != 0;
}
