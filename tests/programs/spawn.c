/* Processes that start others: the first argument says what is tried. The children are this program too, told by their own first argument. */
#include "check.h"

#include <signal.h>
#include <sys/wait.h>

#define LONG_BYTES (3 << 20)

static char *program;

/* All blocking things over an intracommunicator whose members are of several worlds. */
static void exercise(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    long sum = 0, mine = rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
    CHECK_EQUAL(sum, (long)size * (size + 1) / 2);

    /* Long messages around a ring, and one that the receiver does not expect yet. */
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    unsigned char *out = malloc(LONG_BYTES), *in = malloc(LONG_BYTES);
    for (int index = 0; index < LONG_BYTES; index++)
        out[index] = (unsigned char)(index * 7 + rank);
    MPI_Sendrecv(out, LONG_BYTES, MPI_BYTE, next, 5, in, LONG_BYTES, MPI_BYTE, before, 5, comm, MPI_STATUS_IGNORE);
    for (int index = 0; index < LONG_BYTES; index++)
        CHECK(in[index] == (unsigned char)(index * 7 + before), "byte %d", index);
    MPI_Request request;
    MPI_Isend(out, LONG_BYTES, MPI_BYTE, next, 6, comm, &request);
    MPI_Status status;
    MPI_Probe(MPI_ANY_SOURCE, 6, comm, &status);
    int count;
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQUAL(status.MPI_SOURCE, before);
    CHECK_EQUAL(count, LONG_BYTES);
    MPI_Message message;
    MPI_Mprobe(before, 6, comm, &message, &status);
    memset(in, 0, LONG_BYTES);
    MPI_Mrecv(in, LONG_BYTES, MPI_BYTE, &message, &status);
    CHECK_EQUAL(in[LONG_BYTES - 1], (unsigned char)((LONG_BYTES - 1) * 7 + before));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(out);
    free(in);

    /* Many short ones to one, from any source; with gaps, and synchronous. */
    enum { EACH = 50 };
    if (rank == 0) {
        int *seen = calloc((size_t)size, sizeof(int));
        for (int index = 0; index < EACH * (size - 1); index++) {
            int value;
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 7, comm, &status);
            CHECK_EQUAL(value, status.MPI_SOURCE * 1000 + seen[status.MPI_SOURCE]);
            seen[status.MPI_SOURCE]++;
        }
        free(seen);
    } else {
        for (int index = 0; index < EACH; index++) {
            int value = rank * 1000 + index;
            if (index % 10 == 0)
                MPI_Ssend(&value, 1, MPI_INT, 0, 7, comm);
            else
                MPI_Send(&value, 1, MPI_INT, 0, 7, comm);
        }
    }
    MPI_Datatype column;
    MPI_Type_vector(1000, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    int table[2000], got[1000];
    for (int index = 0; index < 2000; index++)
        table[index] = rank * 10000 + index;
    MPI_Sendrecv(table, 1, column, next, 8, got, 1000, MPI_INT, before, 8, comm, MPI_STATUS_IGNORE);
    CHECK_EQUAL(got[999], before * 10000 + 1998);
    MPI_Type_free(&column);

    /* Communicators made of it, and of its parts. */
    MPI_Comm duplicate, half;
    MPI_Comm_dup(comm, &duplicate);
    MPI_Comm_split(duplicate, rank % 2, -rank, &half);
    int members, sum_of_ranks = 0, expected = 0;
    MPI_Comm_size(half, &members);
    MPI_Allreduce(&rank, &sum_of_ranks, 1, MPI_INT, MPI_SUM, half);
    for (int other = rank % 2; other < size; other += 2)
        expected += other;
    CHECK_EQUAL(sum_of_ranks, expected);
    MPI_Comm_free(&half);
    MPI_Barrier(duplicate);
    MPI_Comm shared;
    MPI_Comm_split_type(duplicate, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
    MPI_Win window;
    int *base;
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, shared, &base, &window);
    MPI_Win_fence(0, window);
    *base = rank;
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Comm_free(&shared);
    MPI_Comm_free(&duplicate);

    /* One-sided communication across worlds. */
    int value = rank, fetched = -1;
    MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, comm, &window);
    MPI_Win_fence(0, window);
    MPI_Get(&fetched, 1, MPI_INT, next, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK_EQUAL(fetched, next);
    MPI_Win_free(&window);
}

/* What both sides of an intercommunicator do together. */
static void together(MPI_Comm inter, int high)
{
    int rank, size, remote, is_inter, flag;
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Comm_test_inter(inter, &is_inter);
    CHECK(is_inter, "an intercommunicator");
    int sum = 0, one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK_EQUAL(sum, remote);
    int value = rank;
    if (rank < remote)
        MPI_Sendrecv_replace(&value, 1, MPI_INT, rank, 1, rank, 1, inter, MPI_STATUS_IGNORE);
    CHECK_EQUAL(value, rank);
    MPI_Iprobe(MPI_ANY_SOURCE, 99, inter, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag, "nothing was sent with this tag");
    MPI_Comm merged, again;
    MPI_Intercomm_merge(inter, high, &merged);
    int new_rank;
    MPI_Comm_rank(merged, &new_rank);
    CHECK_EQUAL(new_rank, high ? remote + rank : rank);
    exercise(merged);
    /* From the merged one an intercommunicator of the same two groups, the long way. */
    MPI_Comm local;
    MPI_Comm_split(merged, high, 0, &local);
    MPI_Intercomm_create(local, 0, merged, high ? 0 : size, 3, &again);
    MPI_Comm_remote_size(again, &flag);
    CHECK_EQUAL(flag, remote);
    MPI_Barrier(again);
    MPI_Comm_disconnect(&again);
    MPI_Comm_free(&local);
    MPI_Comm_disconnect(&merged);
}

/* ---- the children */

static int child(int argc, char **argv)
{
    MPI_Comm parent, again;
    MPI_Comm_get_parent(&parent);
    CHECK(parent != MPI_COMM_NULL, "a child has parents");
    MPI_Comm_get_parent(&again);
    CHECK(again == parent, "the same handle each time");
    const char *what = argv[1];
    if (strcmp(what, "child-fails") == 0) {
        if (check_rank == 0)
            return 7;
        pause();
    }
    if (strcmp(what, "child-aborts") == 0) {
        if (check_rank == 0)
            MPI_Abort(MPI_COMM_WORLD, 9);
        pause();
    }
    if (strcmp(what, "child-waits") == 0) {
        printf("a child waits\n");
        fflush(stdout);
        MPI_Barrier(parent);
        pause();
    }
    if (strcmp(what, "child-nested") == 0) {
        int depth = atoi(argv[2]);
        if (depth > 0) {
            char below[16];
            snprintf(below, sizeof below, "%d", depth - 1);
            char *arguments[] = {"child-nested", below, NULL};
            MPI_Comm inter;
            MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
            together(inter, 0);
            MPI_Comm_disconnect(&inter);
        }
    } else if (strcmp(what, "child-arguments") == 0) {
        CHECK_EQUAL(argc, 5);
        CHECK(strcmp(argv[2], "two words") == 0, "%s", argv[2]);
        CHECK(strcmp(argv[3], "") == 0, "%s", argv[3]);
        CHECK(strcmp(argv[4], "*$HOME\"'") == 0, "%s", argv[4]);
        char directory[512];
        CHECK(getcwd(directory, sizeof directory) && strcmp(directory, "/") == 0, "%s", directory);
        const char *value = getenv("SPAWN_TEST");
        CHECK(value && strcmp(value, "a=b c") == 0, "%s", value ? value : "not set");
    } else if (strcmp(what, "child-finalizes") == 0) {
        MPI_Finalize();
        return 0;
    } else if (strcmp(what, "child-number") == 0) {
        void *number;
        int flag;
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag);
        CHECK(flag && *(int *)number == atoi(argv[2]), "MPI_APPNUM");
    }
    together(parent, 1);
    MPI_Comm_disconnect(&parent);
    CHECK(parent == MPI_COMM_NULL, "disconnected");
    MPI_Comm_get_parent(&again);
    CHECK(again == MPI_COMM_NULL, "no parents any more");
    MPI_Finalize();
    return 0;
}

/* ---- the parents */

static void spawn_some(MPI_Comm comm, int count, char *what, int root)
{
    char *arguments[] = {what, "0", NULL};
    int codes[16] = {1, 1, 1, 1, 1, 1, 1, 1};
    MPI_Comm inter;
    MPI_Comm_spawn(program, arguments, count, MPI_INFO_NULL, root, comm, &inter, codes);
    for (int index = 0; index < count; index++)
        CHECK_EQUAL(codes[index], MPI_SUCCESS);
    int remote;
    MPI_Comm_remote_size(inter, &remote);
    CHECK_EQUAL(remote, count);
    together(inter, 0);
    MPI_Comm_disconnect(&inter);
}

static void with_hints(void)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "wdir", "/");
    MPI_Info_set(info, "env", "SPAWN_TEST=a=b c\nOTHER=1");
    MPI_Info_set(info, "host", "localhost");
    MPI_Info_set(info, "soft", "1,2:100:3");
    char *arguments[] = {"child-arguments", "two words", "", "*$HOME\"'", NULL};
    int codes[4] = {-1, -1, -1, -1}, remote;
    MPI_Comm inter;
    MPI_Comm_spawn(program, arguments, 4, info, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_Comm_remote_size(inter, &remote);
    CHECK_EQUAL(remote, 2);
    CHECK(codes[1] == MPI_SUCCESS && codes[2] != MPI_SUCCESS, "codes %d %d", codes[1], codes[2]);
    together(inter, 0);
    MPI_Comm_disconnect(&inter);
    MPI_Info_free(&info);
}

static void several_programs(void)
{
    char *first[] = {"child-number", "0", NULL}, *second[] = {"child-number", "1", NULL};
    char *commands[] = {program, program}, **arguments[] = {first, second};
    int counts[] = {1, 2}, codes[] = {1, 1, 1};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter;
    MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_WORLD, &inter, codes);
    for (int index = 0; index < 3; index++)
        CHECK_EQUAL(codes[index], MPI_SUCCESS);
    together(inter, 0);
    MPI_Comm_disconnect(&inter);
}

static void expect_refusal(char *command, char **arguments, int count, const char *words)
{
    int codes[] = {-1, -1}, class, length;
    MPI_Comm inter = MPI_COMM_WORLD;
    int code = MPI_Comm_spawn(command, arguments, count, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
    CHECK(code != MPI_SUCCESS, "%s cannot be started", command);
    MPI_Error_class(code, &class);
    CHECK_EQUAL(class, MPI_ERR_SPAWN);
    CHECK(inter == MPI_COMM_NULL, "no communicator");
    for (int index = 0; index < count; index++)
        CHECK_EQUAL(codes[index], MPI_ERR_SPAWN);
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, words), "%s", text);
}

static void what_cannot_be(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char *no_arguments[] = {NULL};
    expect_refusal("/nowhere/program", MPI_ARGV_NULL, 2, "/nowhere/program");
    expect_refusal("no-such-program", no_arguments, 1, "no-such-program");
    /* Programs that never call MPI_Init. */
    expect_refusal("true", MPI_ARGV_NULL, 2, "MPI_Init");
    expect_refusal("false", MPI_ARGV_NULL, 1, "code 1");
    MPI_Comm inter;
    int class, code = MPI_Comm_spawn(program, MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Error_class(code, &class);
    CHECK_EQUAL(class, MPI_ERR_ARG);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    spawn_some(MPI_COMM_WORLD, 1, "child", 0);
}

int main(int argc, char **argv)
{
    program = argv[0];
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) {
        path[length] = 0;
        program = path;
    }
    check_start(&argc, &argv);
    const char *what = argv[1];
    if (strncmp(what, "child", 5) == 0)
        return child(argc, argv);
    MPI_Comm inter;
    MPI_Comm_get_parent(&inter);
    CHECK(inter == MPI_COMM_NULL, "started by a user");
    if (strcmp(what, "some") == 0) {
        spawn_some(MPI_COMM_WORLD, 2, "child", 0);
        spawn_some(MPI_COMM_WORLD, 1, "child", check_size - 1);
    } else if (strcmp(what, "hints") == 0) {
        with_hints();
    } else if (strcmp(what, "multiple") == 0) {
        several_programs();
    } else if (strcmp(what, "nested") == 0) {
        char *arguments[] = {"child-nested", "2", NULL};
        MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
        together(inter, 0);
        MPI_Comm_disconnect(&inter);
    } else if (strcmp(what, "subset") == 0) {
        /* Each by itself, and the even ranks together, while the others go on. */
        spawn_some(MPI_COMM_SELF, 1, "child", 0);
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &half);
        if (check_rank % 2 == 0)
            spawn_some(half, 2, "child", 0);
        MPI_Comm_free(&half);
    } else if (strcmp(what, "refused") == 0) {
        what_cannot_be();
    } else if (strcmp(what, "finalizes") == 0) {
        /* Nobody disconnects. */
        char *arguments[] = {"child-finalizes", NULL};
        MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    } else if (strcmp(what, "fails") == 0 || strcmp(what, "aborts") == 0 || strcmp(what, "killed") == 0 || strcmp(what, "parent-aborts") == 0) {
        char *of[] = {"child-fails", "child-aborts", "child-waits"};
        char *arguments[] = {of[strcmp(what, "fails") == 0 ? 0 : strcmp(what, "aborts") == 0 ? 1 : 2], NULL};
        MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
        if (strcmp(what, "killed") == 0 || strcmp(what, "parent-aborts") == 0) {
            MPI_Barrier(inter);
            if (check_rank == 0 && strcmp(what, "killed") == 0)
                raise(SIGKILL);
            if (check_rank == 0)
                MPI_Abort(MPI_COMM_WORLD, 5);
        }
        pause();
    } else {
        CHECK(0, "%s is nothing that can be tried", what);
    }
    return check_end("spawn");
}
