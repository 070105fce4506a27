/* Sessions: communicators without MPI_Init, beside MPI_Init, and after MPI_Finalize. The argument says which. */
#include "check.h"

static int heard;

static void listener(MPI_Session *session, int *code, ...)
{
    (void)session;
    heard = *code;
}

/* The session's buffer serves a communicator that comes from it through another one. */
static void buffered(MPI_Session session, MPI_Comm comm)
{
    static char buffer[4096 + MPI_BSEND_OVERHEAD];
    int rank, value = 7, got = 0, size = -1;
    void *place;
    MPI_Comm twin;
    MPI_Comm_dup(comm, &twin);
    MPI_Comm_rank(twin, &rank);
    MPI_Comm_set_errhandler(twin, MPI_ERRORS_RETURN);
    CHECK_EQUAL(MPI_Bsend(&value, 1, MPI_INT, rank, 0, twin), MPI_ERR_BUFFER);
    SUCCEEDS(MPI_Session_attach_buffer(session, buffer, sizeof buffer));
    SUCCEEDS(MPI_Bsend(&value, 1, MPI_INT, rank, 0, twin));
    SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, rank, 0, twin, MPI_STATUS_IGNORE));
    CHECK_EQUAL(got, 7);
    SUCCEEDS(MPI_Session_flush_buffer(session));
    SUCCEEDS(MPI_Session_detach_buffer(session, &place, &size));
    CHECK(place == buffer && size == (int)sizeof buffer, "the buffer comes back");
    MPI_Comm_free(&twin);
}

static void use(MPI_Session session, const char *set, int expected)
{
    MPI_Group group;
    MPI_Comm comm;
    MPI_Info info;
    int size, rank, sum = 0, flag, length = 16;
    char value[16];
    SUCCEEDS(MPI_Session_get_pset_info(session, set, &info));
    MPI_Info_get_string(info, "mpi_size", &length, value, &flag);
    MPI_Info_free(&info);
    SUCCEEDS(MPI_Group_from_session_pset(session, set, &group));
    MPI_Group_size(group, &size);
    CHECK(size == (expected ? expected : size) && flag && atoi(value) == size, "%s has %d processes", set, size);
    SUCCEEDS(MPI_Comm_create_from_group(group, "tests of sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    MPI_Comm_rank(comm, &rank);
    rank++;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK_EQUAL(sum, size * (size + 1) / 2);
    buffered(session, comm);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
}

static void names(MPI_Session session)
{
    int count, length = 0;
    char name[MPI_MAX_PSET_NAME_LEN];
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count);
    CHECK(count >= 2, "%d process sets", count);
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, NULL);
    CHECK_EQUAL(length, 12);
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name);
    CHECK(strcmp(name, "mpi://WORLD") == 0, "'%s'", name);
    heard = 0;
    length = 16;
    CHECK_EQUAL(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, count, &length, name), MPI_ERR_ARG);
    CHECK_EQUAL(heard, MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "alone";
    MPI_Session first, second;
    MPI_Errhandler handler;
    MPI_Info info;
    int initialized, flag, length = 64;
    char level[64];
    if (strcmp(mode, "beside") == 0)
        check_start(&argc, &argv);
    MPI_Session_create_errhandler(listener, &handler);
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    SUCCEEDS(MPI_Session_init(info, handler, &first));
    MPI_Errhandler_free(&handler);
    MPI_Info_free(&info);
    MPI_Session_get_info(first, &info);
    MPI_Info_get_string(info, "thread_level", &length, level, &flag);
    CHECK(flag && strcmp(level, "MPI_THREAD_MULTIPLE") == 0, "%s", level);
    MPI_Info_free(&info);
    MPI_Initialized(&initialized);
    CHECK_EQUAL(initialized, strcmp(mode, "beside") == 0);
    names(first);
    use(first, "mpi://WORLD", 0);
    use(first, "mpi://self", 1);
    SUCCEEDS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second));
    use(second, "mpi://WORLD", 0);
    SUCCEEDS(MPI_Session_finalize(&first));
    CHECK(first == MPI_SESSION_NULL, "a finalized session is null");
    use(second, "mpi://WORLD", 0);
    if (strcmp(mode, "alone") == 0) {
        SUCCEEDS(MPI_Session_finalize(&second));
        printf("sessions: ok\n");
        return 0;
    }
    if (strcmp(mode, "before") == 0)
        check_start(&argc, &argv);
    int code = check_end("sessions");
    use(second, "mpi://WORLD", 0);
    SUCCEEDS(MPI_Session_finalize(&second));
    return code;
}
