/* The tool information interface as such: before MPI_Init, between, and after MPI_Finalize; every procedure with right and wrong
   arguments; handles that are stale, of another kind, or garbage. */
#include "tool.h"

#define GIVES(call, expected)                                                                       \
    do {                                                                                            \
        int code_ = (call);                                                                         \
        CHECK(code_ == (expected), #call " returned %d, expected %d (" #expected ")", code_, expected); \
    } while (0)

/* Any pointer-sized value as a handle. */
#define AS(type, value) ((type)(intptr_t)(value))

static void event_callback(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                           void *data)
{
    (void)instance, (void)registration, (void)safety, (void)data;
}

static void dropped_callback(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety,
                             void *data)
{
    (void)count, (void)registration, (void)source, (void)safety, (void)data;
}

static int freed;

static void free_callback(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    (void)registration, (void)safety;
    freed += *(int *)data;
}

/* Every procedure says that the interface is not initialised. */
static void not_initialised(void)
{
    int number = 0, index = 0, length = 10;
    char text[10] = "";
    MPI_Count ticks = 0;
    MPI_Info info = MPI_INFO_NULL;
    MPI_T_cvar_handle control = MPI_T_CVAR_HANDLE_NULL;
    MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    MPI_T_pvar_handle variable = MPI_T_PVAR_HANDLE_NULL;
    MPI_T_event_registration registration = NULL;
    int codes[] = {
        MPI_T_finalize(),
        MPI_T_category_changed(&number),
        MPI_T_category_get_categories(0, 0, &index),
        MPI_T_category_get_cvars(0, 0, &index),
        MPI_T_category_get_events(0, 0, &index),
        MPI_T_category_get_index("parnass", &index),
        MPI_T_category_get_info(0, text, &length, NULL, NULL, NULL, NULL, NULL),
        MPI_T_category_get_num(&number),
        MPI_T_category_get_num_events(0, &number),
        MPI_T_category_get_pvars(0, 0, &index),
        MPI_T_cvar_get_index("direct", &index),
        MPI_T_cvar_get_info(0, text, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        MPI_T_cvar_get_num(&number),
        MPI_T_cvar_handle_alloc(0, NULL, &control, &number),
        MPI_T_cvar_handle_free(&control),
        MPI_T_cvar_read(control, &number),
        MPI_T_cvar_write(control, &number),
        MPI_T_enum_get_info(MPI_T_ENUM_NULL, &number, text, &length),
        MPI_T_enum_get_item(MPI_T_ENUM_NULL, 0, &number, text, &length),
        MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_NONE, &info),
        MPI_T_event_callback_set_info(registration, MPI_T_CB_REQUIRE_NONE, info),
        MPI_T_event_copy(NULL, &number),
        MPI_T_event_get_index("woke_up", &index),
        MPI_T_event_get_info(0, text, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        MPI_T_event_get_num(&number),
        MPI_T_event_get_source(NULL, &index),
        MPI_T_event_get_timestamp(NULL, &ticks),
        MPI_T_event_handle_alloc(0, NULL, info, &registration),
        MPI_T_event_handle_free(registration, NULL, NULL),
        MPI_T_event_handle_get_info(registration, &info),
        MPI_T_event_handle_set_info(registration, info),
        MPI_T_event_read(NULL, 0, &number),
        MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, info, NULL, event_callback),
        MPI_T_event_set_dropped_handler(registration, dropped_callback),
        MPI_T_pvar_get_index("sleeps", MPI_T_PVAR_CLASS_COUNTER, &index),
        MPI_T_pvar_get_info(0, text, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        MPI_T_pvar_get_num(&number),
        MPI_T_pvar_handle_alloc(session, 0, NULL, &variable, &number),
        MPI_T_pvar_handle_free(session, &variable),
        MPI_T_pvar_read(session, variable, &number),
        MPI_T_pvar_readreset(session, variable, &number),
        MPI_T_pvar_reset(session, variable),
        MPI_T_pvar_session_create(&session),
        MPI_T_pvar_session_free(&session),
        MPI_T_pvar_start(session, variable),
        MPI_T_pvar_stop(session, variable),
        MPI_T_pvar_write(session, variable, &number),
        MPI_T_source_get_info(0, text, &length, NULL, NULL, NULL, NULL, NULL, NULL),
        MPI_T_source_get_num(&number),
        MPI_T_source_get_timestamp(0, &ticks),
    };
    CHECK_EQUAL(sizeof codes / sizeof *codes, 50); /* All but MPI_T_init_thread. */
    for (size_t place = 0; place < sizeof codes / sizeof *codes; place++)
        CHECK(codes[place] == MPI_T_ERR_NOT_INITIALIZED, "procedure %zu returned %d", place, codes[place]);
}

/* The convention for strings, with one name of each kind. */
static void strings(void)
{
    char whole[64], cut[4] = "###";
    int length = sizeof whole;
    SUCCEEDS(MPI_T_category_get_info(0, whole, &length, NULL, NULL, NULL, NULL, NULL));
    CHECK(strcmp(whole, "parnass") == 0, "the first category is %s", whole);
    CHECK_EQUAL(length, strlen(whole) + 1);
    length = 3;
    SUCCEEDS(MPI_T_category_get_info(0, cut, &length, NULL, NULL, NULL, NULL, NULL));
    CHECK(memcmp(cut, "pa\0", 4) == 0, "cut to %s", cut);
    CHECK_EQUAL(length, strlen(whole) + 1);
    length = 0;
    SUCCEEDS(MPI_T_category_get_info(0, cut, &length, NULL, NULL, NULL, NULL, NULL));
    CHECK_EQUAL(length, strlen(whole) + 1);
    length = 64;
    SUCCEEDS(MPI_T_category_get_info(0, NULL, &length, NULL, NULL, NULL, NULL, NULL));
    CHECK_EQUAL(length, strlen(whole) + 1);
    SUCCEEDS(MPI_T_category_get_info(0, cut, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(memcmp(cut, "pa\0", 4) == 0, "a buffer without a length was written to");
}

static void controls(void)
{
    int total = 0, found = 0, strange[] = {-1, 0};
    SUCCEEDS(MPI_T_cvar_get_num(&total));
    CHECK(total >= 10, "there are %d control variables", total);
    GIVES(MPI_T_cvar_get_num(NULL), MPI_T_ERR_INVALID);
    for (int index = 0; index < total; index++) {
        char name[64], text[2048];
        int name_length = sizeof name, text_length = sizeof text, verbosity = 0, bind = 0, scope = 0, again = -1;
        MPI_Datatype datatype = MPI_DATATYPE_NULL;
        MPI_T_enum values = AS(MPI_T_enum, 77);
        SUCCEEDS(MPI_T_cvar_get_info(index, name, &name_length, &verbosity, &datatype, &values, text, &text_length, &bind,
                                     &scope));
        SUCCEEDS(MPI_T_cvar_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        CHECK(strlen(text) > 10, "%s has no description", name);
        CHECK_EQUAL(bind, MPI_T_BIND_NO_OBJECT);
        CHECK(scope == MPI_T_SCOPE_LOCAL || scope == MPI_T_SCOPE_ALL_EQ, "%s has scope %d", name, scope);
        CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL, "%d", verbosity);
        SUCCEEDS(MPI_T_cvar_get_index(name, &again));
        CHECK_EQUAL(again, index);
        MPI_T_cvar_handle handle, copy;
        int count = 0;
        SUCCEEDS(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
        char value[1024];
        memset(value, 1, sizeof value);
        SUCCEEDS(MPI_T_cvar_read(handle, value));
        if (datatype == MPI_CHAR) {
            CHECK_EQUAL(count, 1024);
            CHECK(memchr(value, 0, sizeof value) != NULL, "%s has no end", name);
        } else {
            CHECK_EQUAL(count, 1);
            CHECK(datatype == MPI_INT || datatype == MPI_UNSIGNED || datatype == MPI_UINT64_T, "%s", name);
        }
        if (datatype == MPI_INT) {
            int items = 0, number = -1;
            char item[16];
            int item_length = sizeof item;
            CHECK(values != MPI_T_ENUM_NULL, "%s has no enumeration", name);
            SUCCEEDS(MPI_T_enum_get_info(values, &items, item, &item_length));
            CHECK_EQUAL(items, 2);
            item_length = sizeof item;
            SUCCEEDS(MPI_T_enum_get_item(values, 1, &number, item, &item_length));
            CHECK(number == 1 && strcmp(item, "on") == 0, "%d is %s", number, item);
            GIVES(MPI_T_enum_get_item(values, 2, &number, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
            GIVES(MPI_T_enum_get_item(values, -1, &number, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
            found++;
        } else {
            CHECK(values == MPI_T_ENUM_NULL, "%s has an enumeration", name);
        }
        copy = handle;
        SUCCEEDS(MPI_T_cvar_handle_free(&handle));
        CHECK(handle == MPI_T_CVAR_HANDLE_NULL, "a freed handle is not null");
        GIVES(MPI_T_cvar_read(copy, value), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_cvar_write(copy, value), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_cvar_handle_free(&copy), MPI_T_ERR_INVALID_HANDLE);
    }
    CHECK(found > 0, "no switch was found");
    strange[1] = total;
    for (int place = 0; place < 2; place++) {
        MPI_T_cvar_handle handle;
        int count;
        GIVES(MPI_T_cvar_get_info(strange[place], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
              MPI_T_ERR_INVALID_INDEX);
        GIVES(MPI_T_cvar_handle_alloc(strange[place], NULL, &handle, &count), MPI_T_ERR_INVALID_INDEX);
    }
    MPI_T_cvar_handle handle = cvar("direct_threshold");
    int index;
    uint64_t value;
    GIVES(MPI_T_cvar_get_index("no such thing", &index), MPI_T_ERR_INVALID_NAME);
    GIVES(MPI_T_cvar_get_index(NULL, &index), MPI_T_ERR_INVALID);
    GIVES(MPI_T_cvar_get_index("direct", NULL), MPI_T_ERR_INVALID);
    GIVES(MPI_T_cvar_handle_alloc(0, NULL, NULL, &index), MPI_T_ERR_INVALID);
    GIVES(MPI_T_cvar_read(handle, NULL), MPI_T_ERR_INVALID);
    GIVES(MPI_T_cvar_write(handle, NULL), MPI_T_ERR_INVALID);
    GIVES(MPI_T_cvar_handle_free(NULL), MPI_T_ERR_INVALID);
    value = UINT64_MAX; /* Above what is allowed. */
    GIVES(MPI_T_cvar_write(handle, &value), MPI_T_ERR_INVALID);
    SUCCEEDS(MPI_T_cvar_handle_free(&handle));
}

static void variables(void)
{
    int total = 0, number;
    SUCCEEDS(MPI_T_pvar_get_num(&total));
    CHECK(total > 100, "there are %d performance variables", total);
    GIVES(MPI_T_pvar_get_num(NULL), MPI_T_ERR_INVALID);
    MPI_T_pvar_session session, other;
    SUCCEEDS(MPI_T_pvar_session_create(&session));
    SUCCEEDS(MPI_T_pvar_session_create(&other));
    GIVES(MPI_T_pvar_session_create(NULL), MPI_T_ERR_INVALID);
    for (int index = 0; index < total; index++) {
        char name[64], text[512];
        int name_length = sizeof name, text_length = sizeof text, verbosity, class, bind, readonly, continuous, atomic;
        int again = -1, count;
        MPI_Datatype datatype;
        MPI_T_enum values;
        SUCCEEDS(MPI_T_pvar_get_info(index, name, &name_length, &verbosity, &class, &datatype, &values, text, &text_length,
                                     &bind, &readonly, &continuous, &atomic));
        SUCCEEDS(MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        CHECK(strlen(text) > 5 && values == MPI_T_ENUM_NULL, "%s: %s", name, text);
        SUCCEEDS(MPI_T_pvar_get_index(name, class, &again));
        CHECK_EQUAL(again, index);
        GIVES(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_GENERIC, &again), MPI_T_ERR_INVALID_NAME);
        CHECK(datatype == (class == MPI_T_PVAR_CLASS_TIMER ? MPI_DOUBLE : MPI_UNSIGNED_LONG_LONG), "%s", name);
        CHECK_EQUAL(continuous, readonly);
        CHECK_EQUAL(atomic, !readonly);
        CHECK_EQUAL(readonly, class == MPI_T_PVAR_CLASS_LEVEL);
        if (bind != MPI_T_BIND_NO_OBJECT)
            continue;
        MPI_T_pvar_handle handle, copy;
        union {
            unsigned long long number;
            double seconds;
        } value = {~0ull};
        SUCCEEDS(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
        CHECK_EQUAL(count, 1);
        SUCCEEDS(MPI_T_pvar_read(session, handle, &value));
        CHECK(value.number == 0, "%s is not 0 before it is started", name);
        SUCCEEDS(MPI_T_pvar_start(session, handle));
        SUCCEEDS(MPI_T_pvar_start(session, handle));
        SUCCEEDS(MPI_T_pvar_readreset(session, handle, &value));
        SUCCEEDS(MPI_T_pvar_reset(session, handle));
        SUCCEEDS(MPI_T_pvar_stop(session, handle));
        if (class == MPI_T_PVAR_CLASS_TIMER) {
            value.seconds = 1.5;
            SUCCEEDS(MPI_T_pvar_write(session, handle, &value));
            SUCCEEDS(MPI_T_pvar_read(session, handle, &value));
            CHECK(value.seconds > 1.49 && value.seconds < 1.51, "%s is %f", name, value.seconds);
            value.seconds = -1;
            GIVES(MPI_T_pvar_write(session, handle, &value), MPI_T_ERR_INVALID);
        } else {
            value.number = 12345;
            SUCCEEDS(MPI_T_pvar_write(session, handle, &value));
            SUCCEEDS(MPI_T_pvar_read(session, handle, &value));
            CHECK(value.number == 12345, "%s is %llu", name, value.number);
        }
        GIVES(MPI_T_pvar_read(other, handle, &value), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_pvar_start(other, handle), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_pvar_read(session, handle, NULL), MPI_T_ERR_INVALID);
        GIVES(MPI_T_pvar_write(session, handle, NULL), MPI_T_ERR_INVALID);
        GIVES(MPI_T_pvar_readreset(session, handle, NULL), MPI_T_ERR_INVALID);
        copy = handle;
        GIVES(MPI_T_pvar_handle_free(other, &copy), MPI_T_ERR_INVALID_HANDLE);
        SUCCEEDS(MPI_T_pvar_handle_free(session, &handle));
        CHECK(handle == MPI_T_PVAR_HANDLE_NULL, "a freed handle is not null");
        GIVES(MPI_T_pvar_read(session, copy, &value), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_pvar_readreset(session, copy, &value), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_pvar_write(session, copy, &value), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_pvar_reset(session, copy), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_pvar_start(session, copy), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_pvar_stop(session, copy), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_pvar_handle_free(session, &copy), MPI_T_ERR_INVALID_HANDLE);
        copy = MPI_T_PVAR_ALL_HANDLES;
        GIVES(MPI_T_pvar_read(session, copy, &value), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_pvar_readreset(session, copy, &value), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_pvar_write(session, copy, &value), MPI_T_ERR_INVALID_HANDLE);
    }
    SUCCEEDS(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    SUCCEEDS(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    SUCCEEDS(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
    GIVES(MPI_T_pvar_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
          MPI_T_ERR_INVALID_INDEX);
    GIVES(MPI_T_pvar_get_info(total, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
          MPI_T_ERR_INVALID_INDEX);
    GIVES(MPI_T_pvar_get_index("no such thing", MPI_T_PVAR_CLASS_COUNTER, &number), MPI_T_ERR_INVALID_NAME);
    GIVES(MPI_T_pvar_get_index(NULL, MPI_T_PVAR_CLASS_COUNTER, &number), MPI_T_ERR_INVALID);
    MPI_T_pvar_handle handle;
    GIVES(MPI_T_pvar_handle_alloc(session, total, NULL, &handle, &number), MPI_T_ERR_INVALID_INDEX);
    GIVES(MPI_T_pvar_handle_alloc(session, 0, NULL, NULL, &number), MPI_T_ERR_INVALID);
    GIVES(MPI_T_pvar_handle_alloc(MPI_T_PVAR_SESSION_NULL, 0, NULL, &handle, &number), MPI_T_ERR_INVALID_SESSION);
    GIVES(MPI_T_pvar_handle_alloc(session, pvar_index("unexpected_now"), NULL, &handle, &number), MPI_T_ERR_INVALID);

    /* The handles of a session end with it, and no others. */
    MPI_T_pvar_handle first = pvar(session, "sleeps", NULL), second = pvar(other, "sleeps", NULL);
    MPI_T_pvar_session gone = session;
    unsigned long long value;
    SUCCEEDS(MPI_T_pvar_session_free(&session));
    CHECK(session == MPI_T_PVAR_SESSION_NULL, "a freed session is not null");
    GIVES(MPI_T_pvar_read(gone, first, &value), MPI_T_ERR_INVALID_SESSION);
    GIVES(MPI_T_pvar_read(other, first, &value), MPI_T_ERR_INVALID_HANDLE);
    GIVES(MPI_T_pvar_start(gone, MPI_T_PVAR_ALL_HANDLES), MPI_T_ERR_INVALID_SESSION);
    GIVES(MPI_T_pvar_session_free(&gone), MPI_T_ERR_INVALID_SESSION);
    GIVES(MPI_T_pvar_session_free(NULL), MPI_T_ERR_INVALID);
    SUCCEEDS(MPI_T_pvar_read(other, second, &value));
    SUCCEEDS(MPI_T_pvar_session_free(&other));
}

static void limits(void)
{
    enum { MANY = 2000 };
    static MPI_T_pvar_session sessions[MANY];
    int made = 0, code = MPI_SUCCESS;
    while (made < MANY && (code = MPI_T_pvar_session_create(&sessions[made])) == MPI_SUCCESS)
        made++;
    CHECK(code == MPI_T_ERR_OUT_OF_SESSIONS && made > 100, "%d sessions, then %d", made, code);
    while (made > 0)
        SUCCEEDS(MPI_T_pvar_session_free(&sessions[--made]));

    enum { HANDLES = 70000 };
    MPI_T_cvar_handle *handles = malloc(HANDLES * sizeof *handles);
    int count;
    while (made < HANDLES && (code = MPI_T_cvar_handle_alloc(0, NULL, &handles[made], &count)) == MPI_SUCCESS)
        made++;
    CHECK(code == MPI_T_ERR_OUT_OF_HANDLES && made > 1000, "%d handles, then %d", made, code);
    while (made > 0)
        SUCCEEDS(MPI_T_cvar_handle_free(&handles[--made]));
    free(handles);
}

static void categories(void)
{
    int total, changed, again, cvars, pvars, below, events, index;
    int sums[4] = {0, 0, 0, 0}, numbers[4];
    SUCCEEDS(MPI_T_category_get_num(&total));
    SUCCEEDS(MPI_T_category_changed(&changed));
    GIVES(MPI_T_category_get_num(NULL), MPI_T_ERR_INVALID);
    GIVES(MPI_T_category_changed(NULL), MPI_T_ERR_INVALID);
    for (int category = 0; category < total; category++) {
        char name[64], text[512];
        int name_length = sizeof name, text_length = sizeof text, members[256];
        SUCCEEDS(MPI_T_category_get_info(category, name, &name_length, text, &text_length, &cvars, &pvars, &below));
        SUCCEEDS(MPI_T_category_get_num_events(category, &events));
        SUCCEEDS(MPI_T_category_get_index(name, &index));
        CHECK_EQUAL(index, category);
        sums[0] += cvars, sums[1] += pvars, sums[2] += events, sums[3] += below;
        int (*const get[])(int, int, int[]) = {MPI_T_category_get_cvars, MPI_T_category_get_pvars, MPI_T_category_get_events,
                                               MPI_T_category_get_categories};
        int expected[] = {cvars, pvars, events, below};
        for (int kind = 0; kind < 4; kind++) {
            memset(members, 0xff, sizeof members);
            SUCCEEDS(get[kind](category, 256, members));
            for (int place = 0; place < 256; place++)
                CHECK((members[place] == -1) == (place >= expected[kind]), "%s: member %d is %d", name, place, members[place]);
            memset(members, 0xff, sizeof members);
            SUCCEEDS(get[kind](category, 1, members));
            CHECK_EQUAL(members[1], -1);
            SUCCEEDS(get[kind](category, 0, NULL));
            GIVES(get[kind](category, -1, members), MPI_T_ERR_INVALID);
            GIVES(get[kind](total, 1, members), MPI_T_ERR_INVALID_INDEX);
            GIVES(get[kind](-1, 1, members), MPI_T_ERR_INVALID_INDEX);
        }
    }
    SUCCEEDS(MPI_T_cvar_get_num(&numbers[0]));
    SUCCEEDS(MPI_T_pvar_get_num(&numbers[1]));
    SUCCEEDS(MPI_T_event_get_num(&numbers[2]));
    numbers[3] = total - 1;
    for (int kind = 0; kind < 4; kind++)
        CHECK_EQUAL(sums[kind], numbers[kind]); /* Everything is somewhere, once. */
    SUCCEEDS(MPI_T_category_changed(&again));
    CHECK_EQUAL(again, changed);
    GIVES(MPI_T_category_get_info(total, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    GIVES(MPI_T_category_get_num_events(-1, &events), MPI_T_ERR_INVALID_INDEX);
    GIVES(MPI_T_category_get_index("no such thing", &index), MPI_T_ERR_INVALID_NAME);
}

static void events(void)
{
    int total, sources, number, index;
    MPI_Count before, after;
    SUCCEEDS(MPI_T_source_get_num(&sources));
    CHECK(sources >= 1, "%d sources", sources);
    for (int source = 0; source < sources; source++) {
        char name[64], text[256];
        int name_length = sizeof name, text_length = sizeof text, keys = -1;
        MPI_T_source_order order;
        MPI_Count ticks, most;
        MPI_Info info = MPI_INFO_NULL;
        SUCCEEDS(MPI_T_source_get_info(source, name, &name_length, text, &text_length, &order, &ticks, &most, &info));
        SUCCEEDS(MPI_Info_get_nkeys(info, &keys));
        CHECK_EQUAL(keys, 0);
        SUCCEEDS(MPI_Info_free(&info));
        CHECK(order == MPI_T_SOURCE_ORDERED && ticks == 1000000000 && most > ticks, "source %s", name);
        SUCCEEDS(MPI_T_source_get_info(source, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        SUCCEEDS(MPI_T_source_get_timestamp(source, &before));
        SUCCEEDS(MPI_T_source_get_timestamp(source, &after));
        CHECK(after >= before && before >= 0, "time goes back");
    }
    GIVES(MPI_T_source_get_num(NULL), MPI_T_ERR_INVALID);
    GIVES(MPI_T_source_get_info(sources, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    GIVES(MPI_T_source_get_timestamp(-1, &before), MPI_T_ERR_INVALID_INDEX);
    GIVES(MPI_T_source_get_timestamp(0, NULL), MPI_T_ERR_INVALID);

    SUCCEEDS(MPI_T_event_get_num(&total));
    for (int event = 0; event < total; event++) {
        char name[64], text[512], item[64];
        int name_length = sizeof name, text_length = sizeof text, verbosity, bind, elements = 8, items = 0;
        MPI_Datatype datatypes[8];
        MPI_Aint places[8];
        MPI_T_enum names;
        MPI_Info info;
        SUCCEEDS(MPI_T_event_get_info(event, name, &name_length, &verbosity, datatypes, places, &elements, &names, &info, text,
                                      &text_length, &bind));
        SUCCEEDS(MPI_Info_free(&info));
        CHECK(elements >= 1 && elements <= 6 && bind == MPI_T_BIND_NO_OBJECT, "%s: %d elements", name, elements);
        CHECK_EQUAL(places[0], 0);
        for (int element = 1; element < elements; element++) {
            int size = datatypes[element - 1] == MPI_UINT64_T ? 8 : 4;
            CHECK(places[element] >= places[element - 1] + size, "%s: elements overlap", name);
        }
        int item_length = sizeof item;
        SUCCEEDS(MPI_T_enum_get_info(names, &items, item, &item_length));
        CHECK_EQUAL(items, elements);
        int one = 1;
        datatypes[1] = MPI_DATATYPE_NULL;
        SUCCEEDS(MPI_T_event_get_info(event, NULL, NULL, NULL, datatypes, NULL, &one, NULL, NULL, NULL, NULL, NULL));
        CHECK_EQUAL(one, elements);
        CHECK(datatypes[1] == MPI_DATATYPE_NULL, "more was written than there is room for");
        SUCCEEDS(MPI_T_event_get_info(event, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        SUCCEEDS(MPI_T_event_get_index(name, &index));
        CHECK_EQUAL(index, event);

        MPI_T_event_registration registration, copy;
        SUCCEEDS(MPI_T_event_handle_alloc(event, NULL, MPI_INFO_NULL, &registration));
        SUCCEEDS(MPI_T_event_handle_set_info(registration, MPI_INFO_NULL));
        SUCCEEDS(MPI_T_event_handle_get_info(registration, &info));
        SUCCEEDS(MPI_Info_free(&info));
        GIVES(MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_NONE, &info), MPI_T_ERR_INVALID);
        SUCCEEDS(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, NULL,
                                               event_callback));
        GIVES(MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_NONE, &info), MPI_T_ERR_INVALID);
        SUCCEEDS(MPI_T_event_callback_set_info(registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL));
        SUCCEEDS(MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, &info));
        SUCCEEDS(MPI_Info_free(&info));
        SUCCEEDS(MPI_T_event_set_dropped_handler(registration, dropped_callback));
        SUCCEEDS(MPI_T_event_set_dropped_handler(registration, NULL));
        GIVES(MPI_T_event_register_callback(registration, AS(MPI_T_cb_safety, 5), MPI_INFO_NULL, NULL, event_callback),
              MPI_T_ERR_INVALID);
        GIVES(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, AS(MPI_Info, 0x1234567), NULL, event_callback),
              MPI_T_ERR_INVALID);
        SUCCEEDS(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, NULL, NULL));
        GIVES(MPI_T_event_callback_set_info(registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL), MPI_T_ERR_INVALID);
        copy = registration;
        int step = 1;
        freed = 0;
        SUCCEEDS(MPI_T_event_handle_free(registration, &step, free_callback));
        CHECK_EQUAL(freed, 1);
        GIVES(MPI_T_event_handle_free(copy, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_event_register_callback(copy, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, event_callback),
              MPI_T_ERR_INVALID_HANDLE);
    }
    MPI_T_event_registration registration;
    GIVES(MPI_T_event_get_num(NULL), MPI_T_ERR_INVALID);
    GIVES(MPI_T_event_get_info(total, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
          MPI_T_ERR_INVALID_INDEX);
    GIVES(MPI_T_event_get_index("no such thing", &index), MPI_T_ERR_INVALID_NAME);
    GIVES(MPI_T_event_handle_alloc(-1, NULL, MPI_INFO_NULL, &registration), MPI_T_ERR_INVALID_INDEX);
    GIVES(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, NULL), MPI_T_ERR_INVALID);
    GIVES(MPI_T_event_handle_alloc(0, NULL, AS(MPI_Info, 0x1234567), &registration), MPI_T_ERR_INVALID);
    /* Outside of a callback there is no instance. */
    GIVES(MPI_T_event_read(NULL, 0, &number), MPI_T_ERR_INVALID_HANDLE);
    GIVES(MPI_T_event_copy(NULL, &number), MPI_T_ERR_INVALID_HANDLE);
    GIVES(MPI_T_event_get_timestamp(NULL, &before), MPI_T_ERR_INVALID_HANDLE);
    GIVES(MPI_T_event_get_source(NULL, &index), MPI_T_ERR_INVALID_HANDLE);
}

/* Whatever is given as a handle, the answer is an error code. */
static void garbage(void)
{
    MPI_T_pvar_session session;
    SUCCEEDS(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle variable = pvar(session, "sleeps", NULL);
    MPI_T_cvar_handle control = cvar("direct");
    MPI_T_event_registration registration;
    SUCCEEDS(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &registration));
    intptr_t values[] = {0, 1, 2, -1, 0x1000, INTPTR_MIN, (intptr_t)session, (intptr_t)variable, (intptr_t)control,
                         (intptr_t)registration, (intptr_t)&session, 0};
    char buffer[1024];
    int number;
    MPI_Count ticks;
    MPI_Info info;
    values[sizeof values / sizeof *values - 1] = (intptr_t)check_mix(1);
    for (uint64_t seed = 0; seed < 3000; seed++) {
        size_t known = sizeof values / sizeof *values;
        intptr_t value = seed < known ? values[seed] : (intptr_t)(check_mix(seed) >> seed % 40);
        if (value != (intptr_t)control) {
            MPI_T_cvar_handle handle = AS(MPI_T_cvar_handle, value);
            GIVES(MPI_T_cvar_read(handle, buffer), MPI_T_ERR_INVALID_HANDLE);
            GIVES(MPI_T_cvar_write(handle, buffer), MPI_T_ERR_INVALID_HANDLE);
            GIVES(MPI_T_cvar_handle_free(&handle), MPI_T_ERR_INVALID_HANDLE);
        }
        if (value != (intptr_t)variable) {
            MPI_T_pvar_handle handle = AS(MPI_T_pvar_handle, value);
            GIVES(MPI_T_pvar_read(session, handle, buffer), MPI_T_ERR_INVALID_HANDLE);
            GIVES(MPI_T_pvar_handle_free(session, &handle), MPI_T_ERR_INVALID_HANDLE);
            if (handle != MPI_T_PVAR_ALL_HANDLES)
                GIVES(MPI_T_pvar_stop(session, handle), MPI_T_ERR_INVALID_HANDLE);
        }
        if (value != (intptr_t)session) {
            MPI_T_pvar_session other = AS(MPI_T_pvar_session, value);
            GIVES(MPI_T_pvar_read(other, variable, buffer), MPI_T_ERR_INVALID_SESSION);
            GIVES(MPI_T_pvar_session_free(&other), MPI_T_ERR_INVALID_SESSION);
        }
        if (value != (intptr_t)registration) {
            MPI_T_event_registration other = AS(MPI_T_event_registration, value);
            GIVES(MPI_T_event_handle_free(other, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
            GIVES(MPI_T_event_handle_get_info(other, &info), MPI_T_ERR_INVALID_HANDLE);
            GIVES(MPI_T_event_handle_set_info(other, MPI_INFO_NULL), MPI_T_ERR_INVALID_HANDLE);
            GIVES(MPI_T_event_set_dropped_handler(other, NULL), MPI_T_ERR_INVALID_HANDLE);
            GIVES(MPI_T_event_callback_get_info(other, MPI_T_CB_REQUIRE_NONE, &info), MPI_T_ERR_INVALID_HANDLE);
        }
        GIVES(MPI_T_event_read(AS(MPI_T_event_instance, value), 0, buffer), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_event_copy(AS(MPI_T_event_instance, value), buffer), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_event_get_timestamp(AS(MPI_T_event_instance, value), &ticks), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_event_get_source(AS(MPI_T_event_instance, value), &number), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_enum_get_info(AS(MPI_T_enum, value), &number, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
        GIVES(MPI_T_enum_get_item(AS(MPI_T_enum, value), 0, &number, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    }
    SUCCEEDS(MPI_T_event_handle_free(registration, NULL, NULL));
    SUCCEEDS(MPI_T_cvar_handle_free(&control));
    SUCCEEDS(MPI_T_pvar_session_free(&session));
}

static void everything(void)
{
    strings();
    controls();
    variables();
    limits();
    categories();
    events();
    garbage();
}

int main(int argc, char **argv)
{
    int provided = -1;
    not_initialised();
    GIVES(MPI_T_init_thread(MPI_THREAD_SINGLE, NULL), MPI_T_ERR_INVALID);
    GIVES(MPI_T_init_thread(12345, &provided), MPI_T_ERR_INVALID);
    SUCCEEDS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    CHECK(provided >= MPI_THREAD_SINGLE, "provided is %d", provided);
    SUCCEEDS(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK_EQUAL(provided, MPI_THREAD_MULTIPLE);
    SUCCEEDS(MPI_T_finalize());
    everything();

    /* A variable of a communicator has to wait for MPI. */
    MPI_T_pvar_session session;
    MPI_T_pvar_handle level;
    MPI_Comm world = MPI_COMM_WORLD, none = MPI_COMM_NULL;
    int count;
    SUCCEEDS(MPI_T_pvar_session_create(&session));
    GIVES(MPI_T_pvar_handle_alloc(session, pvar_index("unexpected_now"), &world, &level, &count), MPI_T_ERR_NOT_ACCESSIBLE);
    MPI_T_pvar_handle sent = pvar(session, "sent_short_messages", NULL);
    SUCCEEDS(MPI_T_pvar_start(session, sent));
    /* What is written before MPI_Init is in force afterwards, also where it cannot be written then. */
    MPI_T_cvar_handle spins = cvar("spins"), threshold = cvar("direct_threshold");
    unsigned number = 77;
    uint64_t bytes = 30000;
    SUCCEEDS(MPI_T_cvar_write(spins, &number));
    SUCCEEDS(MPI_T_cvar_write(threshold, &bytes));

    check_start(&argc, &argv);
    number = 0, bytes = 0;
    SUCCEEDS(MPI_T_cvar_read(spins, &number));
    SUCCEEDS(MPI_T_cvar_read(threshold, &bytes));
    CHECK_EQUAL(number, 77);
    CHECK_EQUAL(bytes, 30000);
    number = 78, bytes = 40000;
    GIVES(MPI_T_cvar_write(spins, &number), MPI_T_ERR_CVAR_SET_NEVER);
    SUCCEEDS(MPI_T_cvar_write(threshold, &bytes));
    SUCCEEDS(MPI_T_cvar_read(threshold, &bytes));
    CHECK_EQUAL(bytes, 40000);
    everything();
    SUCCEEDS(MPI_T_pvar_handle_alloc(session, pvar_index("unexpected_now"), &world, &level, &count));
    GIVES(MPI_T_pvar_handle_alloc(session, pvar_index("unexpected_now"), &none, &level, &count), MPI_T_ERR_INVALID_HANDLE);
    unsigned long long value;
    GIVES(MPI_T_pvar_start(session, level), MPI_T_ERR_PVAR_NO_STARTSTOP);
    GIVES(MPI_T_pvar_stop(session, level), MPI_T_ERR_PVAR_NO_STARTSTOP);
    GIVES(MPI_T_pvar_reset(session, level), MPI_T_ERR_PVAR_NO_WRITE);
    GIVES(MPI_T_pvar_write(session, level, &value), MPI_T_ERR_PVAR_NO_WRITE);
    GIVES(MPI_T_pvar_readreset(session, level, &value), MPI_T_ERR_PVAR_NO_ATOMIC);
    SUCCEEDS(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES)); /* Those that cannot be started are passed over. */
    SUCCEEDS(MPI_T_pvar_read(session, level, &value));

    /* An error of a tool never comes to an error handler: this is the one that ends the job. */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    GIVES(MPI_T_cvar_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    char text[MPI_MAX_ERROR_STRING];
    int length = 0, class = 0;
    SUCCEEDS(MPI_Error_string(MPI_T_ERR_INVALID_INDEX, text, &length));
    SUCCEEDS(MPI_Error_class(MPI_T_ERR_INVALID_INDEX, &class));
    CHECK(length > 0 && class == MPI_T_ERR_INVALID_INDEX, "%d: %s", class, text);

    int token = 5;
    MPI_Request request;
    MPI_Irecv(&token, 1, MPI_INT, check_rank, 3, MPI_COMM_WORLD, &request);
    MPI_Send(&token, 1, MPI_INT, check_rank, 3, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();

    value = 0;
    SUCCEEDS(MPI_T_pvar_read(session, sent, &value));
    CHECK(value >= 1, "after MPI_Finalize %llu short messages", value);
    GIVES(MPI_T_pvar_read(session, level, &value), MPI_T_ERR_NOT_ACCESSIBLE);
    GIVES(MPI_T_cvar_write(threshold, &bytes), MPI_T_ERR_CVAR_SET_NEVER);
    SUCCEEDS(MPI_T_cvar_read(threshold, &bytes));
    CHECK_EQUAL(bytes, 40000);
    everything();
    SUCCEEDS(MPI_T_finalize());
    GIVES(MPI_T_pvar_read(session, sent, &value), MPI_T_ERR_NOT_INITIALIZED);
    not_initialised();
    SUCCEEDS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided)); /* Again; nothing of before is left. */
    GIVES(MPI_T_pvar_read(session, sent, &value), MPI_T_ERR_INVALID_SESSION);
    GIVES(MPI_T_cvar_read(threshold, &bytes), MPI_T_ERR_INVALID_HANDLE);
    everything();
    SUCCEEDS(MPI_T_finalize());
    if (check_rank == 0)
        printf("tool_interface: ok\n");
    return 0;
}
