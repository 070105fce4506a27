/* Events are raised: callbacks are called with the right data, in the order of time, at a safety level that lets them call MPI;
   what overflows is told to the handler of dropped events; registrations end when they are freed, also by their own callback. */
#include "tool.h"

static int index_of(const char *name)
{
    int index = -1;
    SUCCEEDS(MPI_T_event_get_index(name, &index));
    return index;
}

static MPI_T_event_registration registered(const char *name, MPI_T_cb_safety safety, MPI_T_event_cb_function function, void *data)
{
    MPI_T_event_registration registration;
    SUCCEEDS(MPI_T_event_handle_alloc(index_of(name), NULL, MPI_INFO_NULL, &registration));
    SUCCEEDS(MPI_T_event_register_callback(registration, safety, MPI_INFO_NULL, data, function));
    return registration;
}

/* What a callback has seen of messages. */
struct seen {
    int count, sum_of_tags, unexpected, calls_mpi;
    uint64_t bytes;
    MPI_Count last;
    MPI_T_event_instance instance;
    MPI_T_event_registration registration;
};

static void on_message(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    struct seen *seen = data;
    int source = -1, tag = -1, place = -1, code;
    unsigned context = 0;
    uint64_t bytes = 0;
    MPI_Count time = -1, now = -1;
    char whole[64];
    memset(whole, 0x55, sizeof whole);
    CHECK(safety == MPI_T_CB_REQUIRE_NONE, "called at the level %d", (int)safety);
    SUCCEEDS(MPI_T_event_read(instance, 0, &source));
    SUCCEEDS(MPI_T_event_read(instance, 1, &tag));
    SUCCEEDS(MPI_T_event_read(instance, 2, &context));
    SUCCEEDS(MPI_T_event_read(instance, 3, &bytes));
    SUCCEEDS(MPI_T_event_copy(instance, whole));
    CHECK(memcmp(whole, &source, 4) == 0 && memcmp(whole + 4, &tag, 4) == 0 && memcmp(whole + 8, &context, 4) == 0 &&
              memcmp(whole + 16, &bytes, 8) == 0,
          "the copy is another");
    CHECK_EQUAL(whole[63], 0x55);
    SUCCEEDS(MPI_T_event_get_source(instance, &place));
    SUCCEEDS(MPI_T_event_get_timestamp(instance, &time));
    SUCCEEDS(MPI_T_source_get_timestamp(place, &now));
    CHECK(time >= seen->last && time <= now, "%lld after %lld, now %lld", (long long)time, (long long)seen->last, (long long)now);
    seen->last = time;
    CHECK_EQUAL(MPI_T_event_read(instance, -1, &code), MPI_T_ERR_INVALID_INDEX);
    CHECK_EQUAL(MPI_T_event_read(instance, 17, &code), MPI_T_ERR_INVALID_INDEX);
    CHECK_EQUAL(MPI_T_event_read(instance, 0, NULL), MPI_T_ERR_INVALID);
    if (tag >= 1000 && tag < 2000) { /* Those of the program; collectives send messages too. */
        CHECK(source >= 0 && source < check_size, "source %d", source);
        seen->count++;
        seen->sum_of_tags += tag - 1000;
        seen->bytes += bytes;
        int unexpected = 0;
        if (MPI_T_event_read(instance, 4, &unexpected) == MPI_SUCCESS)
            seen->unexpected += unexpected;
    }
    if (seen->calls_mpi) { /* At this level a callback may communicate: with itself, here. */
        int sent = seen->count, got = -1;
        seen->calls_mpi = 0;
        MPI_Sendrecv(&sent, 1, MPI_INT, check_rank, 9, &got, 1, MPI_INT, check_rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQUAL(got, sent);
    }
    seen->instance = instance;
    seen->registration = registration;
}

static void never(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    (void)instance, (void)registration, (void)safety, (void)data;
    CHECK(0, "a callback that was replaced or freed was called");
}

static int freed;

static void on_free(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    (void)registration, (void)safety;
    freed += *(int *)data;
}

/* Until what was raised has been told. */
static void until(const int *count, int wanted)
{
    int flag;
    while (*count < wanted)
        MPI_Iprobe(MPI_ANY_SOURCE, 4000, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void messages(void)
{
    struct seen matched = {0}, kept = {0};
    int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    char data[100];
    MPI_Request request;
    memset(data, 1, sizeof data);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_T_event_registration on_matched = registered("message_matched", MPI_T_CB_REQUIRE_NONE, on_message, &matched);
    MPI_T_event_registration on_kept = registered("unexpected_arrived", MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, on_message, &kept);
    /* The callback of the lowest level is taken. */
    SUCCEEDS(MPI_T_event_register_callback(on_matched, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, NULL, never));
    MPI_Barrier(MPI_COMM_WORLD);

    /* Expected: the receive is posted before anybody sends. */
    matched.calls_mpi = 1;
    for (int number = 0; number < 5; number++) {
        MPI_Irecv(data, 100, MPI_BYTE, before, 1001 + number, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(data, 10 * number, MPI_BYTE, next, 1001 + number, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    until(&matched.count, 5);
    CHECK_EQUAL(matched.count, 5);
    CHECK_EQUAL(matched.sum_of_tags, 15);
    CHECK_EQUAL(matched.bytes, 100);
    CHECK_EQUAL(matched.unexpected, 0);
    CHECK_EQUAL(matched.calls_mpi, 0);
    CHECK_EQUAL(kept.count, 0);
    MPI_Barrier(MPI_COMM_WORLD); /* Nobody sends more before all have looked. */

    /* Unexpected. */
    for (int number = 0; number < 5; number++)
        MPI_Send(data, 7, MPI_BYTE, next, 1011 + number, MPI_COMM_WORLD);
    /* What came before this one is kept; a probe may find a message that still lies where it came. */
    MPI_Sendrecv(NULL, 0, MPI_BYTE, next, 1, NULL, 0, MPI_BYTE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int number = 4; number >= 0; number--) {
        MPI_Probe(before, 1011 + number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(data, 100, MPI_BYTE, before, 1011 + number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    until(&kept.count, 5);
    until(&matched.count, 10);
    CHECK_EQUAL(kept.count, 5);
    CHECK_EQUAL(kept.sum_of_tags, 65);
    CHECK_EQUAL(kept.bytes, 35);
    CHECK_EQUAL(matched.count, 10);
    CHECK_EQUAL(matched.unexpected, 5);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(matched.registration == on_matched && kept.registration == on_kept, "another registration was told");

    /* An instance is one only in its callback. */
    int value;
    CHECK_EQUAL(MPI_T_event_read(matched.instance, 0, &value), MPI_T_ERR_INVALID_HANDLE);

    /* Blocking receives, the shortest way. */
    if (check_rank % 2 == 0) {
        MPI_Send(data, 1, MPI_BYTE, next, 1020, MPI_COMM_WORLD);
        MPI_Recv(data, 1, MPI_BYTE, before, 1020, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(data, 1, MPI_BYTE, before, 1020, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data, 1, MPI_BYTE, next, 1020, MPI_COMM_WORLD);
    }
    until(&matched.count, 11);
    CHECK_EQUAL(matched.count, 11);
    MPI_Barrier(MPI_COMM_WORLD);

    /* Freed: nobody is told, and that is told once. */
    int step = 1;
    freed = 0;
    SUCCEEDS(MPI_T_event_handle_free(on_matched, &step, on_free));
    SUCCEEDS(MPI_T_event_handle_free(on_kept, &step, on_free));
    CHECK_EQUAL(freed, 2);
    MPI_Sendrecv(data, 1, MPI_BYTE, next, 1030, data + 1, 1, MPI_BYTE, before, 1030, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(matched.count, 11);
}

/* A callback that frees its own registration is called once. */
struct once {
    int count, step;
};

static void on_once(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    struct once *once = data;
    int variable = -1, length = 64;
    char name[64] = "";
    (void)safety;
    SUCCEEDS(MPI_T_event_read(instance, 0, &variable));
    SUCCEEDS(MPI_T_pvar_get_info(variable, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(strncmp(name, "allreduce_", 10) == 0, "the collective is %s", name);
    once->count++;
    CHECK_EQUAL(MPI_T_finalize(), MPI_T_ERR_NOT_ACCESSIBLE);
    SUCCEEDS(MPI_T_event_handle_free(registration, &once->step, on_free));
    CHECK_EQUAL(freed, 0); /* Not while the callback runs. */
}

static void on_collective(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    (void)instance, (void)registration, (void)safety;
    ++*(int *)data;
}

static void collectives(void)
{
    struct once once = {0, 10};
    int value = 1, total = 0, count = 0;
    freed = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    registered("collective_begun", MPI_T_CB_REQUIRE_NONE, on_once, &once);
    MPI_T_event_registration counting = registered("collective_begun", MPI_T_CB_REQUIRE_THREAD_SAFE, on_collective, &count);
    for (int number = 0; number < 6; number++)
        MPI_Allreduce(&value, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(once.count, 1);
    CHECK_EQUAL(freed, 10);
    CHECK_EQUAL(count, 7);
    SUCCEEDS(MPI_T_event_handle_free(counting, NULL, NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(count, 7);
}

static long long dropped;
static int dropped_calls;

static void on_dropped(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety, void *data)
{
    (void)registration, (void)safety;
    CHECK(count > 0 && source >= 0, "%lld dropped by %d", (long long)count, source);
    CHECK(*(int *)data > 0, "events that were dropped are told before those that came earlier");
    dropped += count;
    dropped_calls++;
}

/* More unexpected messages than can wait to be told, all taken in by one call. */
static void overflow(void)
{
    enum { FLOOD = 12000 };
    int told = 0, flag = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        MPI_T_event_registration registration = registered("unexpected_arrived", MPI_T_CB_REQUIRE_NONE, on_collective, &told);
        SUCCEEDS(MPI_T_event_set_dropped_handler(registration, on_dropped));
        MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        while (!flag)
            MPI_Iprobe(1, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        while (told + dropped < FLOOD + 1)
            MPI_Iprobe(1, 4000, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        /* Messages of barriers may be among them. */
        CHECK(told + dropped <= FLOOD + 20, "%d told and %lld dropped", told, dropped);
        SUCCEEDS(MPI_T_event_handle_free(registration, NULL, NULL));
        for (int number = 0; number < FLOOD; number++)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (check_rank == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int number = 0; number < FLOOD; number++)
            MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void on_slept(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    uint64_t asleep = 0;
    (void)registration, (void)safety;
    SUCCEEDS(MPI_T_event_read(instance, 0, &asleep));
    *(uint64_t *)data += asleep;
}

static int awaited = -5;

static void on_sleep(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    int rank = -9;
    (void)registration, (void)safety;
    SUCCEEDS(MPI_T_event_read(instance, 0, &rank));
    CHECK(rank >= -1 && rank < check_size, "waits for %d", rank);
    awaited = rank;
    ++*(int *)data;
}

static void sleep_and_wake(void)
{
    uint64_t asleep = 0;
    int sleeps = 0, flag, all = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_T_event_registration first = registered("fell_asleep", MPI_T_CB_REQUIRE_NONE, on_sleep, &sleeps);
    MPI_T_event_registration second = registered("woke_up", MPI_T_CB_REQUIRE_NONE, on_slept, &asleep);
    for (int pause = 200; !all; pause *= 2) { /* Where others want the cores, a rank that waits comes to sleep late. */
        int slept = 1;
        MPI_Iprobe(MPI_ANY_SOURCE, 4000, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        asleep = 0;
        sleeps = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank == 0) {
            sleep_ms(pause);
            for (int rank = 1; rank < check_size; rank++)
                MPI_Send(NULL, 0, MPI_BYTE, rank, 5, MPI_COMM_WORLD);
        } else {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Iprobe(MPI_ANY_SOURCE, 4000, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            slept = sleeps >= 1 && asleep > 50000000 && awaited == 0;
            CHECK(slept || pause < 10000, "after %d ms: %d sleeps of %llu ns, the last for rank %d", pause, sleeps,
                  (unsigned long long)asleep, awaited);
        }
        MPI_Allreduce(&slept, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    SUCCEEDS(MPI_T_event_handle_free(first, NULL, NULL));
    SUCCEEDS(MPI_T_event_handle_free(second, NULL, NULL));
    MPI_Barrier(MPI_COMM_WORLD);
}

static int connections;

int main(int argc, char **argv)
{
    int provided, nodes = argc > 1 && strcmp(argv[1], "nodes") == 0;
    SUCCEEDS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    /* Registered before MPI_Init. */
    MPI_T_event_registration connected = registered("connection_made", MPI_T_CB_REQUIRE_NONE, on_collective, &connections);
    check_start(&argc, &argv);
    CHECK(check_size >= 2, "two ranks at least");
    MPI_Barrier(MPI_COMM_WORLD);
    messages();
    collectives();
    sleep_and_wake();
    overflow();
    CHECK(nodes ? connections >= 1 : connections == 0, "%d connections", connections);
    if (!nodes && check_rank == 0 && dropped_calls > 0)
        printf("%lld events found no room\n", dropped);
    SUCCEEDS(MPI_T_event_handle_free(connected, NULL, NULL));
    check_end("tool_events");
    SUCCEEDS(MPI_T_finalize());
    return 0;
}
