/* Performance variables show what really happened, and control variables change what happens: messages and bytes by the way in
   which they travel, levels and high-water marks, two sessions that do not disturb each other, collectives by algorithm, windows,
   files, time. Ranks work in pairs; the argument "nodes" says that the ranks of a pair are on different nodes. */
#include "tool.h"

enum { SHORT = 24, MIDDLE = 12288, LONG = 2 << 20, TAG = 5 };

static MPI_T_pvar_session session;
static int peer, nodes;
static const char *const ways[] = {"short", "chunk", "pipe", "direct", "stream", "announced"};
enum { WAYS = 6 };

static char buffer[LONG];

/* The handles of one direction: messages and bytes of each way. */
struct direction {
    MPI_T_pvar_handle messages[WAYS], bytes[WAYS];
};

static struct direction start_direction(const char *verb)
{
    struct direction handles;
    for (int way = 0; way < WAYS; way++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s_messages", verb, ways[way]);
        handles.messages[way] = pvar(session, name, NULL);
        snprintf(name, sizeof name, "%s_%s_bytes", verb, ways[way]);
        handles.bytes[way] = pvar(session, name, NULL);
        SUCCEEDS(MPI_T_pvar_start(session, handles.messages[way]));
        SUCCEEDS(MPI_T_pvar_start(session, handles.bytes[way]));
    }
    return handles;
}

static unsigned long long sum(const MPI_T_pvar_handle handles[WAYS])
{
    unsigned long long total = 0;
    for (int way = 0; way < WAYS; way++)
        total += pvar_value(session, handles[way]);
    return total;
}

static void end_direction(struct direction *handles)
{
    for (int way = 0; way < WAYS; way++) {
        SUCCEEDS(MPI_T_pvar_handle_free(session, &handles->messages[way]));
        SUCCEEDS(MPI_T_pvar_handle_free(session, &handles->bytes[way]));
    }
}

/* Both ranks of a pair exchange `count` messages of a length; whoever is even sends first. */
static void exchange(int count, int length)
{
    for (int turn = 0; turn < 2; turn++) {
        for (int number = 0; number < count; number++) {
            if ((check_rank + turn) % 2 == 0)
                MPI_Send(buffer, length, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
            else
                MPI_Recv(buffer, length, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

static void messages(void)
{
    static const int lengths[] = {0, 1, SHORT, 40, 41, 1000, 3000, MIDDLE, 70000, LONG};
    for (size_t place = 0; place < sizeof lengths / sizeof *lengths; place++) {
        int length = lengths[place], count = 7;
        struct direction sent = start_direction("sent"), received = start_direction("received");
        exchange(count, length);
        CHECK_EQUAL(sum(sent.messages), count);
        CHECK_EQUAL(sum(sent.bytes), (long long)count * length);
        CHECK_EQUAL(sum(received.messages), count);
        CHECK_EQUAL(sum(received.bytes), (long long)count * length);
        if (length <= 40) /* One slot of a mailbox, or one frame, everywhere. */
            CHECK_EQUAL(pvar_value(session, sent.messages[0]), count);
        if (!nodes && length == 1000)
            CHECK_EQUAL(pvar_value(session, sent.messages[0]), count);
        if (!nodes && (length == 3000 || length == MIDDLE)) { /* In the mailbox where each rank has a core, else in a chunk. */
            unsigned long long chunks = pvar_value(session, sent.messages[1]);
            CHECK_EQUAL(pvar_value(session, sent.messages[0]) + chunks, count);
            if (check_size > sysconf(_SC_NPROCESSORS_ONLN))
                CHECK_EQUAL(chunks, count);
        }
        if (nodes && (length == 3000 || length == MIDDLE))
            CHECK_EQUAL(pvar_value(session, sent.messages[4]), count);
        if (nodes && length == LONG)
            CHECK_EQUAL(pvar_value(session, sent.messages[5]), count);
        end_direction(&sent);
        end_direction(&received);
    }
}

/* A control variable that changes how messages travel from now on. */
static void threshold(void)
{
    MPI_T_cvar_handle control = cvar("direct_threshold");
    uint64_t before, small = 1000, again;
    SUCCEEDS(MPI_T_cvar_read(control, &before));
    struct direction sent = start_direction("sent");
    exchange(5, 3000);
    unsigned long long long_ones = pvar_value(session, sent.messages[2]) + pvar_value(session, sent.messages[3]) +
                                   pvar_value(session, sent.messages[5]);
    CHECK_EQUAL(long_ones, 0);
    SUCCEEDS(MPI_T_cvar_write(control, &small));
    SUCCEEDS(MPI_T_cvar_read(control, &again));
    CHECK_EQUAL(again, small);
    exchange(5, 3000);
    long_ones = pvar_value(session, sent.messages[2]) + pvar_value(session, sent.messages[3]) +
                pvar_value(session, sent.messages[5]);
    CHECK_EQUAL(long_ones, 5);
    SUCCEEDS(MPI_T_cvar_write(control, &before));
    end_direction(&sent);
    SUCCEEDS(MPI_T_cvar_handle_free(&control));
}

/* Receives `count` empty messages that are there already, so that nothing is unexpected afterwards. */
static void take_all(MPI_Comm comm, int count)
{
    for (int number = 0; number < count; number++)
        MPI_Recv(NULL, 0, MPI_BYTE, peer, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
}

/* Sends `count` empty messages, and returns when those of the peer are kept here: they were sent before the one that is received. (A probe
   would not do: what it finds may still lie where it came.) */
static void make_unexpected(MPI_Comm comm, int count)
{
    for (int number = 0; number < count; number++)
        MPI_Send(NULL, 0, MPI_BYTE, peer, number, comm);
    MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 1000, NULL, 0, MPI_BYTE, peer, 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void levels(void)
{
    MPI_Comm first, second;
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    MPI_T_pvar_session other;
    SUCCEEDS(MPI_T_pvar_session_create(&other));
    MPI_T_pvar_handle on_first = pvar(session, "unexpected_now", &first), on_second = pvar(session, "unexpected_now", &second);
    MPI_T_pvar_handle posted = pvar(session, "posted_now", &first), posted_most = pvar(session, "posted_most", NULL);
    MPI_T_pvar_handle most = pvar(session, "unexpected_most", NULL), other_most = pvar(other, "unexpected_most", NULL);
    MPI_T_pvar_handle kept = pvar(session, "unexpected_messages", NULL);
    SUCCEEDS(MPI_T_pvar_start(session, most));
    SUCCEEDS(MPI_T_pvar_start(session, kept));
    SUCCEEDS(MPI_T_pvar_start(session, posted_most));
    MPI_Barrier(MPI_COMM_WORLD); /* Nobody sends before all have started. */
    make_unexpected(first, 10);
    CHECK_EQUAL(pvar_value(session, on_first), 10);
    CHECK_EQUAL(pvar_value(session, on_second), 0);
    CHECK(pvar_value(session, most) >= 10, "the mark is %llu", pvar_value(session, most));
    CHECK(pvar_value(session, kept) >= 10, "%llu were kept", pvar_value(session, kept));
    MPI_Barrier(MPI_COMM_WORLD); /* Nobody sends more before all have looked. */
    make_unexpected(second, 4);
    CHECK_EQUAL(pvar_value(session, on_second), 4);
    CHECK(pvar_value(session, most) >= 14, "the mark is %llu", pvar_value(session, most));
    take_all(first, 10);
    CHECK_EQUAL(pvar_value(session, on_first), 0);
    CHECK_EQUAL(pvar_value(session, on_second), 4);
    unsigned long long high = pvar_value(session, most), value = 0;
    CHECK(high >= 14, "the mark fell to %llu", high);

    /* A mark that begins later begins with the level of now, and does not disturb the first one. */
    MPI_Barrier(MPI_COMM_WORLD);
    SUCCEEDS(MPI_T_pvar_start(other, other_most));
    value = pvar_value(other, other_most);
    CHECK(value >= 4 && value < high, "the second mark begins at %llu", value);
    CHECK_EQUAL(pvar_value(session, most), high);
    make_unexpected(first, 2);
    CHECK(pvar_value(other, other_most) >= 6, "the second mark is %llu", pvar_value(other, other_most));
    CHECK_EQUAL(pvar_value(session, most), high);
    take_all(first, 2);
    take_all(second, 4);
    MPI_Barrier(MPI_COMM_WORLD);
    SUCCEEDS(MPI_T_pvar_readreset(session, most, &value));
    CHECK_EQUAL(value, high);
    CHECK(pvar_value(session, most) < 4, "after its reset the mark is %llu", pvar_value(session, most));
    CHECK(pvar_value(other, other_most) >= 6, "a reset elsewhere changed the mark to %llu", pvar_value(other, other_most));

    /* Posted receives. */
    MPI_Request requests[20];
    for (int number = 0; number < 20; number++)
        MPI_Irecv(NULL, 0, MPI_BYTE, peer, number, first, &requests[number]);
    CHECK_EQUAL(pvar_value(session, posted), 20);
    CHECK(pvar_value(session, posted_most) >= 20, "%llu", pvar_value(session, posted_most));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int number = 0; number < 20; number++)
        MPI_Send(NULL, 0, MPI_BYTE, peer, number, first);
    MPI_Waitall(20, requests, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(pvar_value(session, posted), 0);
    CHECK(pvar_value(session, posted_most) >= 20, "%llu", pvar_value(session, posted_most));
    MPI_Comm_free(&first);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_T_pvar_read(session, posted, &value) == MPI_T_ERR_INVALID_HANDLE, "its communicator is freed");
    SUCCEEDS(MPI_T_pvar_session_free(&other));
    SUCCEEDS(MPI_T_pvar_handle_free(session, &posted));
    SUCCEEDS(MPI_T_pvar_handle_free(session, &on_first));
    MPI_Comm_free(&second);
}

/* Two sessions count the same thing, each from its own start to its own stop. */
static void sessions(void)
{
    MPI_T_pvar_session other;
    SUCCEEDS(MPI_T_pvar_session_create(&other));
    MPI_T_pvar_handle mine = pvar(session, "sent_short_messages", NULL), theirs = pvar(other, "sent_short_messages", NULL);
    unsigned long long value = 0;
    exchange(3, SHORT);
    CHECK_EQUAL(pvar_value(session, mine), 0);
    SUCCEEDS(MPI_T_pvar_start(session, mine));
    exchange(4, SHORT);
    SUCCEEDS(MPI_T_pvar_start(other, MPI_T_PVAR_ALL_HANDLES));
    exchange(5, SHORT);
    CHECK_EQUAL(pvar_value(session, mine), 9);
    CHECK_EQUAL(pvar_value(other, theirs), 5);
    SUCCEEDS(MPI_T_pvar_stop(other, theirs));
    exchange(2, SHORT);
    CHECK_EQUAL(pvar_value(session, mine), 11);
    CHECK_EQUAL(pvar_value(other, theirs), 5);
    SUCCEEDS(MPI_T_pvar_readreset(session, mine, &value));
    CHECK_EQUAL(value, 11);
    SUCCEEDS(MPI_T_pvar_start(other, theirs));
    exchange(1, SHORT);
    CHECK_EQUAL(pvar_value(session, mine), 1);
    CHECK_EQUAL(pvar_value(other, theirs), 6); /* What it had counts on. */
    value = 100;
    SUCCEEDS(MPI_T_pvar_write(session, mine, &value));
    exchange(1, SHORT);
    CHECK_EQUAL(pvar_value(session, mine), 101);
    SUCCEEDS(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    CHECK_EQUAL(pvar_value(session, mine), 0);
    CHECK_EQUAL(pvar_value(other, theirs), 7);
    SUCCEEDS(MPI_T_pvar_session_free(&other));
    SUCCEEDS(MPI_T_pvar_handle_free(session, &mine));
}

/* An algorithm that a control variable asks for is the one that runs. */
static void algorithms(void)
{
    MPI_T_cvar_handle control = cvar("collective");
    char before[1024], now[1024];
    SUCCEEDS(MPI_T_cvar_read(control, before));
    MPI_T_pvar_handle ring = pvar(session, "allreduce_ring", NULL), linear = pvar(session, "allreduce_linear", NULL);
    SUCCEEDS(MPI_T_pvar_start(session, ring));
    SUCCEEDS(MPI_T_pvar_start(session, linear));
    const char *const texts[] = {"allreduce:ring", "allreduce:linear", "allreduce:ring"};
    for (int turn = 0; turn < 3; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        SUCCEEDS(MPI_T_cvar_write(control, texts[turn]));
        SUCCEEDS(MPI_T_cvar_read(control, now));
        CHECK(strcmp(now, texts[turn]) == 0, "%s", now);
        for (int number = 0; number < 3; number++) {
            int value = 1, total = 0;
            MPI_Allreduce(&value, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            CHECK_EQUAL(total, check_size);
        }
    }
    CHECK_EQUAL(pvar_value(session, ring), 6);
    CHECK_EQUAL(pvar_value(session, linear), 3);
    CHECK_EQUAL(MPI_T_cvar_write(control, "allreduce:star"), MPI_T_ERR_INVALID);
    CHECK_EQUAL(MPI_T_cvar_write(control, "nonsense"), MPI_T_ERR_INVALID);

    /* Not while an operation is under way. Rank 0 enters last, so that it cannot be over elsewhere. */
    MPI_Request request;
    int value = 1, total = 0;
    if (check_rank != 0) {
        MPI_Iallreduce(&value, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        CHECK_EQUAL(MPI_T_cvar_write(control, "allreduce:linear"), MPI_T_ERR_CVAR_SET_NOT_NOW);
        SUCCEEDS(MPI_T_cvar_read(control, now));
        CHECK(strcmp(now, texts[2]) == 0, "a refused value is in force: %s", now);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 77, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        for (int rank = 1; rank < check_size; rank++)
            MPI_Recv(NULL, 0, MPI_BYTE, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Iallreduce(&value, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    CHECK_EQUAL(total, check_size);
    MPI_Barrier(MPI_COMM_WORLD);
    SUCCEEDS(MPI_T_cvar_write(control, before));
    SUCCEEDS(MPI_T_cvar_handle_free(&control));
    SUCCEEDS(MPI_T_pvar_handle_free(session, &ring));
    SUCCEEDS(MPI_T_pvar_handle_free(session, &linear));
}

static MPI_T_pvar_handle started(const char *name)
{
    MPI_T_pvar_handle handle = pvar(session, name, NULL);
    SUCCEEDS(MPI_T_pvar_start(session, handle));
    return handle;
}

static void windows_and_files(void)
{
    MPI_T_pvar_handle puts = started("window_puts"), put_bytes = started("window_put_bytes"), gets = started("window_gets");
    MPI_T_pvar_handle updates = started("window_accumulates"), writes = started("file_written_bytes");
    MPI_T_pvar_handle reads = started("file_read_bytes");
    int *memory, number = check_rank;
    MPI_Win window;
    MPI_Win_allocate(4 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memory[0] = memory[1] = 0;
    MPI_Win_fence(0, window);
    MPI_Put(&number, 1, MPI_INT, peer, 0, 1, MPI_INT, window);
    MPI_Put(&number, 1, MPI_INT, peer, 2, 1, MPI_INT, window);
    MPI_Accumulate(&number, 1, MPI_INT, peer, 1, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    CHECK_EQUAL(memory[0], peer);
    MPI_Get(&number, 1, MPI_INT, peer, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK_EQUAL(number, check_rank);
    MPI_Win_free(&window);
    CHECK_EQUAL(pvar_value(session, puts), 2);
    CHECK_EQUAL(pvar_value(session, put_bytes), 8);
    CHECK_EQUAL(pvar_value(session, gets), 1);
    CHECK_EQUAL(pvar_value(session, updates), 1);

    char name[256];
    const char *folder = getenv("TMPDIR");
    snprintf(name, sizeof name, "%s/tool_counters.%d", folder ? folder : "/tmp", check_rank);
    MPI_File file;
    SUCCEEDS(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                           &file));
    SUCCEEDS(MPI_File_write_at(file, 0, buffer, 5000, MPI_BYTE, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_read_at(file, 0, buffer, 3000, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_EQUAL(pvar_value(session, writes), 5000);
    CHECK(pvar_value(session, reads) >= 3000, "%llu bytes read", pvar_value(session, reads));
    SUCCEEDS(MPI_File_close(&file));
}

/* Rank 0 lets the others wait. */
static void waiting(void)
{
    MPI_T_pvar_handle waited = pvar(session, "time_waiting", NULL), asleep = pvar(session, "time_asleep", NULL);
    MPI_T_pvar_handle sleeps = started("sleeps");
    double seconds = -1, slept = -1, later = -1, began = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    SUCCEEDS(MPI_T_pvar_start(session, waited));
    SUCCEEDS(MPI_T_pvar_start(session, asleep));
    if (check_rank == 0) {
        sleep_ms(200);
        for (int rank = 1; rank < check_size; rank++)
            MPI_Send(NULL, 0, MPI_BYTE, rank, 78, MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 78, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    double elapsed = MPI_Wtime() - began;
    SUCCEEDS(MPI_T_pvar_stop(session, waited));
    SUCCEEDS(MPI_T_pvar_stop(session, asleep));
    SUCCEEDS(MPI_T_pvar_read(session, waited, &seconds));
    SUCCEEDS(MPI_T_pvar_read(session, asleep, &slept));
    CHECK(seconds >= 0 && seconds <= elapsed, "waited %f s of %f", seconds, elapsed);
    CHECK(slept >= 0 && slept <= seconds, "slept %f s of %f", slept, seconds);
    if (check_rank != 0 && check_size == 2 && !nodes) {
        CHECK(seconds > 0.1, "waited only %f s for one who slept 0.2 s", seconds);
        CHECK(slept > 0.1, "slept only %f s", slept);
        CHECK(pvar_value(session, sleeps) >= 1, "no sleep was counted");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    exchange(3, SHORT);
    SUCCEEDS(MPI_T_pvar_read(session, waited, &later));
    CHECK(later == seconds, "a stopped timer went on from %f to %f", seconds, later);
}

int main(int argc, char **argv)
{
    int provided;
    SUCCEEDS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    check_start(&argc, &argv);
    CHECK(check_size % 2 == 0, "ranks work in pairs");
    peer = check_rank ^ 1;
    nodes = argc > 1 && strcmp(argv[1], "nodes") == 0;
    SUCCEEDS(MPI_T_pvar_session_create(&session));
    MPI_Barrier(MPI_COMM_WORLD);
    messages();
    threshold();
    MPI_Barrier(MPI_COMM_WORLD);
    levels();
    sessions();
    algorithms();
    windows_and_files();
    waiting();
    if (nodes) {
        MPI_T_pvar_handle connections = pvar(session, "network_connections", NULL), out = pvar(session, "network_sent_bytes", NULL);
        SUCCEEDS(MPI_T_pvar_start(session, out));
        exchange(2, LONG);
        CHECK(pvar_value(session, out) >= 2 * LONG, "%llu bytes went over the network", pvar_value(session, out));
        SUCCEEDS(MPI_T_pvar_handle_free(session, &connections));
    }
    SUCCEEDS(MPI_T_pvar_session_free(&session));
    check_end("tool_counters");
    SUCCEEDS(MPI_T_finalize());
    return 0;
}
