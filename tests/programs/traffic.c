/* Everything at once, in random order: traffic SEED ROUNDS [THREADS].
 *
 * Every rank makes the same plan of a round from the seed: who sends what to whom, on which communicator, in which layout and mode. Then each posts its sends
 * and receives in an order of its own among collectives, reads, writes and sums in windows, computes now and then, and completes them by any of the calls that complete. Wildcards,
 * probes and cancelled receives are among them. What is checked: every byte, the gaps between those that came, every status, the order of messages that may not
 * overtake each other, and the sums. The line that a failed check prints names seed and round, which repeat it. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>

enum { COMMS = 3, TAGS = 4, MOST_MESSAGES = 48, UNUSED_TAG = 99, MOST_RANKS = 64, WORDS = 32 };
enum layout { contiguous, blocks, every_other, structure, LAYOUTS };
enum wildcard { exact, any_source, any_tag, any_of_both, WILDCARDS };
enum mode { standard, synchronous, buffered, persistent, persistent_synchronous, MODES };

struct message {
    int from, to, tag, comm, count;
    enum layout sent, received;
    enum mode mode;
};

/* Which wildcards the receives of a round use, and which comm has them. */
struct plan {
    int messages, wild_comm, probes;
    enum wildcard wildcard;
    struct message message[MOST_MESSAGES];
};

/* A receive that is under way. */
struct receive {
    struct message *expected; /* NULL: whatever comes */
    int *data, room, comm, source, tag;
    size_t ints;
    enum layout layout;
    MPI_Datatype type;
};

/* What one thread works with. */
struct traffic {
    uint64_t seed, draws;
    int round, rank, size;
    MPI_Comm comm[COMMS], group;
    int world[COMMS][MOST_RANKS], place[COMMS][MOST_RANKS];
    MPI_Win created, allocated;
    int *words, *shared;
    int64_t sums, added;
    struct plan plan;
};

#define HOLDS(condition, ...)                                                                       \
    do {                                                                                            \
        if (!(condition)) {                                                                         \
            fprintf(stderr, "traffic: seed %llu, round %d, rank %d: ", (unsigned long long)t->seed, \
                    t->round, t->rank);                                                             \
            CHECK(condition, __VA_ARGS__);                                                          \
        }                                                                                           \
    } while (0)

static uint64_t below(uint64_t *state, uint64_t limit)
{
    *state = check_mix(*state);
    return limit ? *state % limit : 0;
}

/* A number that only this rank draws. */
static int own(struct traffic *t, int limit)
{
    return (int)below(&t->draws, (uint64_t)limit);
}

/* Mostly short, seldom long, and every limit between two protocols is met. */
static int length(uint64_t *state, int long_ones)
{
    switch (below(state, long_ones ? 12 : 8)) {
    case 0: return 0;
    case 1: case 2: return (int)below(state, 9);
    case 3: case 4: return (int)below(state, 300);
    case 5: return (int)below(state, 1100);
    case 6: return (int)below(state, 4200);
    case 7: return (int)below(state, 17000);
    case 8: case 9: return (int)below(state, 30000);
    case 10: return (int)below(state, 100000);
    default: return (int)below(state, 600000);
    }
}

static void make_plan(struct traffic *t)
{
    uint64_t state = check_mix(t->seed * 1000003 + (uint64_t)t->round);
    struct plan *plan = &t->plan;
    plan->messages = 1 + (int)below(&state, MOST_MESSAGES);
    plan->wildcard = below(&state, 3) ? exact : (enum wildcard)below(&state, WILDCARDS);
    plan->wild_comm = (int)below(&state, COMMS);
    plan->probes = below(&state, 3) == 0;
    int pair = below(&state, 4) == 0, a = (int)below(&state, (uint64_t)t->size), b = (int)below(&state, (uint64_t)t->size);
    for (int index = 0; index < plan->messages; index++) {
        struct message *m = &plan->message[index];
        /* Now and then only two talk, so that much is under way between them. */
        m->from = pair ? (index % 2 ? a : b) : (int)below(&state, (uint64_t)t->size);
        m->to = pair ? (index % 2 ? b : a) : (int)below(&state, (uint64_t)t->size);
        m->tag = (int)below(&state, TAGS);
        m->comm = (int)below(&state, COMMS);
        m->count = length(&state, plan->messages < 24);
        m->sent = (enum layout)(below(&state, 2) ? 0 : below(&state, LAYOUTS));
        m->received = (enum layout)(below(&state, 2) ? 0 : below(&state, LAYOUTS));
        m->mode = (enum mode)(below(&state, 2) ? 0 : below(&state, MODES));
    }
}

/* The ints of message `index` of a round. */
static int value(const struct traffic *t, int index, int at)
{
    return (int)((uint32_t)check_mix(t->seed ^ (uint64_t)t->round << 20 ^ (uint64_t)index << 50) + (uint32_t)at * 2654435761u);
}

/* A type with `count` ints, and how many ints of memory it spans. Blocks of some length that is not longer than a thousandth of it. */
static MPI_Datatype make_type(enum layout layout, int count, size_t *span)
{
    MPI_Datatype type, part;
    int block = 3 + count / 1000, whole = count / block, rest = count % block;
    switch (layout) {
    case contiguous:
        *span = (size_t)count;
        MPI_Type_contiguous(count, MPI_INT, &type);
        break;
    case every_other:
        *span = 2 * (size_t)count;
        MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &part);
        MPI_Type_contiguous(count, part, &type);
        MPI_Type_free(&part);
        break;
    case blocks: {
        *span = (size_t)(whole + 1) * (size_t)(block + 2);
        int lengths[2] = {1, rest};
        MPI_Aint places[2] = {0, (MPI_Aint)(whole * (block + 2)) * (MPI_Aint)sizeof(int)};
        MPI_Type_vector(whole, block, block + 2, MPI_INT, &part);
        MPI_Type_create_struct(2, lengths, places, (MPI_Datatype[]){part, MPI_INT}, &type);
        MPI_Type_free(&part);
        break;
    }
    default: {
        /* The last part lies first. */
        int first = count / 3, second = count / 4, third = count - first - second;
        int lengths[3] = {first, second, third};
        MPI_Aint places[3] = {(MPI_Aint)(third + 5) * (MPI_Aint)sizeof(int), (MPI_Aint)(third + first + 6) * (MPI_Aint)sizeof(int), 0};
        *span = (size_t)count + 6;
        MPI_Type_create_struct(3, lengths, places, (MPI_Datatype[]){MPI_INT, MPI_INT, MPI_INT}, &type);
    }
    }
    MPI_Type_commit(&type);
    return type;
}

/* Where int `at` of a type lies. */
static size_t position(enum layout layout, int count, int at)
{
    int block = 3 + count / 1000, first = count / 3, second = count / 4, third = count - first - second;
    switch (layout) {
    case contiguous: return (size_t)at;
    case every_other: return 2 * (size_t)at;
    case blocks: return (size_t)(at / block) * (size_t)(block + 2) + (size_t)(at % block);
    default: return (size_t)(at < first ? third + 5 + at : at < first + second ? third + 6 + at : at - first - second);
    }
}

static void compute(struct traffic *t)
{
    if (own(t, 6) == 0)
        usleep((useconds_t)own(t, 300));
    volatile unsigned spin = (unsigned)own(t, 20000);
    while (spin)
        spin--;
}

static void start_send(struct traffic *t, int index, int **data, MPI_Datatype *type, MPI_Request *request)
{
    const struct message *m = &t->plan.message[index];
    size_t span;
    *type = make_type(m->sent, m->count, &span);
    *data = malloc((span + 1) * sizeof(int));
    memset(*data, 0x55, (span + 1) * sizeof(int));
    for (int at = 0; at < m->count; at++)
        (*data)[position(m->sent, m->count, at)] = value(t, index, at);
    MPI_Comm comm = t->comm[m->comm];
    int to = t->place[m->comm][m->to], plain = m->sent == contiguous;
    MPI_Datatype sent = plain ? MPI_INT : *type;
    int count = plain ? m->count : 1;
    /* What is buffered must fit into the buffer. */
    enum mode mode = m->mode == buffered && m->count > 4000 ? standard : m->mode;
    switch (mode) {
    case synchronous: MPI_Issend(*data, count, sent, to, m->tag, comm, request); break;
    case buffered: MPI_Ibsend(*data, count, sent, to, m->tag, comm, request); break;
    case persistent: MPI_Send_init(*data, count, sent, to, m->tag, comm, request); break;
    case persistent_synchronous: MPI_Ssend_init(*data, count, sent, to, m->tag, comm, request); break;
    default: MPI_Isend(*data, count, sent, to, m->tag, comm, request);
    }
    if (mode == persistent || mode == persistent_synchronous)
        MPI_Start(request);
}

/* Which message a status and the first int tell of: the oldest of those from there that has not come. */
static int identify(struct traffic *t, const struct receive *r, const MPI_Status *status, int count, const char *came)
{
    int from = t->world[r->comm][status->MPI_SOURCE];
    for (int index = 0; index < t->plan.messages; index++) {
        const struct message *m = &t->plan.message[index];
        if (!came[index] && m->from == from && m->to == t->rank && m->comm == r->comm && m->tag == status->MPI_TAG) {
            HOLDS(m->count == count, "%d ints of message %d came, of %d", count, index, m->count);
            return index;
        }
    }
    HOLDS(0, "a message with tag %d from rank %d that nobody sent", status->MPI_TAG, from);
    return -1;
}

static void check_receive(struct traffic *t, struct receive *r, const MPI_Status *status, char *came)
{
    int count;
    MPI_Get_elements(status, r->type, &count);
    int index = identify(t, r, status, count, came);
    came[index] = 1;
    if (r->expected)
        HOLDS(r->expected == &t->plan.message[index], "message %d came instead of %d", index, (int)(r->expected - t->plan.message));
    /* Those that may not overtake: all from one rank that the receive would have taken. */
    if (r->tag == MPI_ANY_TAG)
        for (int before = 0; before < index; before++) {
            const struct message *m = &t->plan.message[before], *now = &t->plan.message[index];
            HOLDS(came[before] || m->to != t->rank || m->from != now->from || m->comm != now->comm, "message %d has overtaken %d", index, before);
        }
    for (int at = 0; at < count; at++) {
        size_t place = position(r->layout, r->room, at);
        HOLDS(r->data[place] == value(t, index, at), "int %d of %d of message %d (layout %d to %d, mode %d) is %#x, expected %#x", at, count, index,
              t->plan.message[index].sent, r->layout, t->plan.message[index].mode, r->data[place], value(t, index, at));
        r->data[place] = 0x77777777;
    }
    for (size_t place = 0; place < r->ints; place++)
        HOLDS(r->data[place] == 0x77777777, "int %zu of the memory of message %d was written over", place, index);
    if (r->type != MPI_INT)
        MPI_Type_free(&r->type);
    free(r->data);
}

static void make_room(struct receive *r, int count, enum layout layout)
{
    size_t span;
    r->room = count;
    r->layout = layout;
    r->type = layout == contiguous ? MPI_INT : make_type(layout, count, &span);
    if (layout == contiguous)
        span = (size_t)count;
    r->ints = span + 2;
    r->data = malloc(r->ints * sizeof(int));
    for (size_t place = 0; place < r->ints; place++)
        r->data[place] = 0x77777777;
}

/* How many of the type's elements a receive names. */
static int elements(const struct receive *r)
{
    return r->layout == contiguous ? r->room : 1;
}

static void prepare_receive(struct traffic *t, struct receive *r, int index, int largest)
{
    struct message *m = &t->plan.message[index];
    int is_wild = m->comm == t->plan.wild_comm && t->plan.wildcard != exact;
    enum wildcard wildcard = is_wild ? t->plan.wildcard : exact;
    r->comm = m->comm;
    r->source = wildcard == any_source || wildcard == any_of_both ? MPI_ANY_SOURCE : t->place[m->comm][m->from];
    r->tag = wildcard == any_tag || wildcard == any_of_both ? MPI_ANY_TAG : m->tag;
    r->expected = is_wild ? NULL : m;
    make_room(r, is_wild ? largest : m->count + (own(t, 3) ? 0 : own(t, 50)), is_wild ? contiguous : m->received);
}

/* Completes all requests by one of the calls that complete. */
static void complete(struct traffic *t, int count, MPI_Request *requests, MPI_Status *statuses)
{
    int left = count, where[MOST_MESSAGES * 3], done, flag;
    MPI_Status found[MOST_MESSAGES * 3];
    for (int index = 0; index < count; index++)
        left -= requests[index] == MPI_REQUEST_NULL;
    switch (own(t, 6)) {
    case 0:
        for (int index = count - 1; index >= 0; index--)
            MPI_Wait(&requests[index], &statuses[index]);
        break;
    case 1:
        while (left) {
            MPI_Waitany(count, requests, &done, found);
            HOLDS(done != MPI_UNDEFINED, "MPI_Waitany knows of none, %d are left", left);
            statuses[done] = found[0];
            /* A persistent one stays, inactive. */
            left--;
        }
        break;
    case 2:
        while (left) {
            MPI_Waitsome(count, requests, &done, where, found);
            HOLDS(done > 0, "MPI_Waitsome: %d, %d are left", done, left);
            for (int index = 0; index < done; index++)
                statuses[where[index]] = found[index];
            left -= done;
        }
        break;
    case 3:
        while (left) {
            MPI_Testsome(count, requests, &done, where, found);
            for (int index = 0; index < done; index++)
                statuses[where[index]] = found[index];
            left -= done < 0 ? 0 : done;
            compute(t);
        }
        break;
    case 4:
        for (flag = 0; !flag; compute(t))
            MPI_Testall(count, requests, &flag, statuses);
        break;
    default:
        MPI_Waitall(count, requests, statuses);
    }
}

/* One access of a window; what all ranks add up is known at the end. */
static void use_windows(struct traffic *t)
{
    MPI_Win window = own(t, 2) ? t->created : t->allocated;
    int target = own(t, t->size), one = 1 + own(t, 5), before, mine[WORDS], back[WORDS];
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window);
    switch (own(t, 3)) {
    case 0:
        MPI_Accumulate(&one, 1, MPI_INT, target, 0, 1, MPI_INT, MPI_SUM, window);
        t->added += one;
        break;
    case 1:
        MPI_Fetch_and_op(&one, &before, MPI_INT, target, 0, MPI_SUM, window);
        t->added += one;
        break;
    default:
        /* A part of the window that is this rank's. */
        for (int at = 0; at < WORDS; at++)
            mine[at] = t->round * 1000 + at + t->rank;
        MPI_Put(mine, WORDS, MPI_INT, target, 1 + t->rank * WORDS, WORDS, MPI_INT, window);
        MPI_Win_flush(target, window);
        MPI_Get(back, WORDS, MPI_INT, target, 1 + t->rank * WORDS, WORDS, MPI_INT, window);
        MPI_Win_flush(target, window);
        HOLDS(memcmp(mine, back, sizeof mine) == 0, "what was put to rank %d reads otherwise", target);
    }
    MPI_Win_unlock(target, window);
}

/* A collective that goes on while the messages do, and what must come of it. */
struct collective {
    int kind, count, root;
    int *in, *out;
};

static void start_collective(struct traffic *t, struct collective *c, MPI_Request *request)
{
    uint64_t state = check_mix(t->seed * 7919 + (uint64_t)t->round);
    c->kind = (int)below(&state, 6);
    c->count = length(&state, 0);
    c->root = (int)below(&state, (uint64_t)t->size);
    size_t all = (size_t)c->count * (size_t)t->size + 1;
    c->in = malloc(all * sizeof(int));
    c->out = malloc(all * sizeof(int));
    for (size_t at = 0; at < all; at++) {
        c->in[at] = t->rank * 1000 + (int)(at % 977);
        c->out[at] = -1;
    }
    switch (c->kind) {
    case 0: MPI_Iallreduce(c->in, c->out, c->count, MPI_INT, MPI_SUM, t->group, request); break;
    case 1: MPI_Ialltoall(c->in, c->count, MPI_INT, c->out, c->count, MPI_INT, t->group, request); break;
    case 2: MPI_Iallgather(c->in, c->count, MPI_INT, c->out, c->count, MPI_INT, t->group, request); break;
    case 3: MPI_Ibcast(t->rank == c->root ? c->in : c->out, c->count, MPI_INT, c->root, t->group, request); break;
    case 4: MPI_Ireduce(c->in, c->out, c->count, MPI_INT, MPI_MAX, c->root, t->group, request); break;
    default: MPI_Ibarrier(t->group, request);
    }
}

static void check_collective(struct traffic *t, struct collective *c)
{
    int ranks = t->size, n = c->count;
    for (int at = 0; at < n; at++)
        switch (c->kind) {
        case 0: HOLDS(c->out[at] == ranks * (ranks - 1) / 2 * 1000 + ranks * (at % 977), "sum %d of %d", at, n); break;
        case 1:
        case 2:
            for (int from = 0; from < ranks; from++) {
                int place = c->kind == 1 ? t->rank * n + at : at;
                HOLDS(c->out[from * n + at] == from * 1000 + place % 977, "int %d of %d from rank %d", at, n, from);
            }
            break;
        case 3: HOLDS(t->rank == c->root || c->out[at] == c->root * 1000 + at % 977, "int %d of %d of the broadcast", at, n); break;
        case 4: HOLDS(t->rank != c->root || c->out[at] == (ranks - 1) * 1000 + at % 977, "maximum %d of %d", at, n); break;
        default: break;
        }
    free(c->in);
    free(c->out);
}

static void go_round(struct traffic *t)
{
    struct plan *plan = &t->plan;
    static const int none = -1;
    int sends[MOST_MESSAGES], receives[MOST_MESSAGES], sending = 0, receiving = 0, largest = 0, requests = 0, wild;
    int sent = 0, posted = 0, *data[MOST_MESSAGES], receive_at[MOST_MESSAGES * 3];
    char came[MOST_MESSAGES] = {0};
    struct receive receive[MOST_MESSAGES];
    MPI_Datatype types[MOST_MESSAGES];
    MPI_Request request[MOST_MESSAGES * 3];
    MPI_Status status[MOST_MESSAGES * 3];
    struct collective collective = {0};
    make_plan(t);
    wild = plan->wildcard != exact;
    for (int index = 0; index < plan->messages; index++) {
        struct message *m = &plan->message[index];
        if (m->from == t->rank)
            sends[sending++] = index;
        if (m->to == t->rank)
            receives[receiving++] = index;
        if (m->comm == plan->wild_comm && m->count > largest)
            largest = m->count;
    }
    int collective_at = own(t, sending + receiving + 1), has_collective = t->round % 2;
    for (int step = 0; sent < sending || posted < receiving || (has_collective && step <= collective_at); step++) {
        if (has_collective && step == collective_at) {
            receive_at[requests] = none;
            start_collective(t, &collective, &request[requests++]);
            continue;
        }
        /* Which first is each rank's own choice: so some messages are expected, and others are not. */
        int sends_first = own(t, 3) != 0;
        if (sent < sending && (sends_first || posted == receiving)) {
            receive_at[requests] = none;
            start_send(t, sends[sent], &data[sent], &types[sent], &request[requests++]);
            sent++;
        } else if (posted < receiving) {
            struct receive *r = &receive[posted];
            struct message *m = &plan->message[receives[posted]];
            prepare_receive(t, r, receives[posted], largest);
            /* Who waits for a message before it has sent its own might wait for ever. */
            if (plan->probes && sent == sending && (!has_collective || step > collective_at) && m->mode != synchronous && own(t, 2)) {
                MPI_Message message;
                MPI_Status probed;
                int count, flag = 0;
                while (!flag && own(t, 50))
                    MPI_Improbe(r->source, r->tag, t->comm[r->comm], &flag, &message, &probed);
                if (flag) {
                    MPI_Get_count(&probed, MPI_INT, &count);
                    if (r->type != MPI_INT)
                        MPI_Type_free(&r->type);
                    free(r->data);
                    make_room(r, count, r->layout);
                    receive_at[requests] = posted;
                    MPI_Imrecv(r->data, elements(r), r->type, &message, &request[requests++]);
                    posted++;
                    continue;
                }
            }
            receive_at[requests] = posted++;
            MPI_Irecv(r->data, elements(r), r->type, r->source, r->tag, t->comm[r->comm], &request[requests++]);
        }
        if (own(t, 8) == 0)
            use_windows(t);
        if (own(t, 4) == 0)
            compute(t);
    }
    int unused = own(t, 4) == 0, nothing;
    MPI_Request cancelled;
    if (unused)
        MPI_Irecv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, UNUSED_TAG, t->comm[0], &cancelled);
    compute(t);
    complete(t, requests, request, status);
    if (unused) {
        MPI_Status ended;
        int flag;
        MPI_Cancel(&cancelled);
        MPI_Wait(&cancelled, &ended);
        MPI_Test_cancelled(&ended, &flag);
        HOLDS(flag, "a receive that matches nothing was not cancelled");
    }
    /* In the order in which they were posted, which is the order in which they have matched. */
    for (int at = 0; at < requests; at++)
        if (receive_at[at] != none)
            check_receive(t, &receive[receive_at[at]], &status[at], came);
    for (int index = 0; index < sending; index++) {
        free(data[index]);
        MPI_Type_free(&types[index]);
    }
    for (int at = 0; at < requests; at++)
        if (request[at] != MPI_REQUEST_NULL)
            MPI_Request_free(&request[at]);
    if (has_collective)
        check_collective(t, &collective);
    /* What a wildcard takes must be of this round. */
    if (wild)
        MPI_Barrier(t->group);
}

static void make_comms(struct traffic *t, MPI_Comm base)
{
    MPI_Group all, here;
    MPI_Comm_group(base, &all);
    MPI_Comm_dup(base, &t->group);
    MPI_Comm_dup(base, &t->comm[0]);
    MPI_Comm_split(base, 0, t->size - t->rank, &t->comm[1]);
    MPI_Comm_split(base, 0, (t->rank * 7 + 3) % t->size, &t->comm[2]);
    for (int comm = 0; comm < COMMS; comm++) {
        MPI_Comm_group(t->comm[comm], &here);
        for (int place = 0; place < t->size; place++)
            MPI_Group_translate_ranks(here, 1, &place, all, &t->world[comm][place]);
        for (int place = 0; place < t->size; place++)
            t->place[comm][t->world[comm][place]] = place;
        MPI_Group_free(&here);
    }
    MPI_Group_free(&all);
    MPI_Aint bytes = (MPI_Aint)(1 + t->size * WORDS) * (MPI_Aint)sizeof(int);
    t->words = calloc(1, (size_t)bytes);
    MPI_Win_create(t->words, bytes, sizeof(int), MPI_INFO_NULL, t->group, &t->created);
    MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, t->group, &t->shared, &t->allocated);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t->rank, 0, t->allocated);
    memset(t->shared, 0, (size_t)bytes);
    MPI_Win_unlock(t->rank, t->allocated);
    MPI_Barrier(t->group);
}

static int rounds;

static void *go(void *argument)
{
    struct traffic *t = argument;
    for (t->round = 0; t->round < rounds; t->round++)
        go_round(t);
    MPI_Barrier(t->group);
    int64_t all;
    for (int window = 0; window < 2; window++) {
        MPI_Win which = window ? t->allocated : t->created;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t->rank, 0, which);
        t->sums += window ? t->shared[0] : t->words[0];
        MPI_Win_unlock(t->rank, which);
    }
    t->sums -= t->added;
    MPI_Allreduce(&t->sums, &all, 1, MPI_INT64_T, MPI_SUM, t->group);
    HOLDS(all == 0, "the sums in the windows are wrong by %lld", (long long)all);
    return NULL;
}

int main(int argc, char **argv)
{
    enum { MOST_THREADS = 8, BUFFER = 16 << 20 };
    static struct traffic traffic[MOST_THREADS];
    pthread_t thread[MOST_THREADS];
    int threads = argc > 3 ? atoi(argv[3]) : 1, provided;
    if (argc < 3 || threads < 1 || threads > MOST_THREADS) {
        fprintf(stderr, "usage: traffic SEED ROUNDS [THREADS: 1 to %d]\n", MOST_THREADS);
        return 2;
    }
    rounds = atoi(argv[2]);
    MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK(check_size <= MOST_RANKS, "%d ranks at most", MOST_RANKS);
    void *buffer = malloc(BUFFER);
    MPI_Buffer_attach(buffer, BUFFER);
    for (int which = 0; which < threads; which++) {
        struct traffic *t = &traffic[which];
        t->seed = strtoull(argv[1], NULL, 10) * 64 + (uint64_t)which;
        t->draws = check_mix(t->seed * 31 + (uint64_t)check_rank + 1);
        t->rank = check_rank;
        t->size = check_size;
        make_comms(t, MPI_COMM_WORLD);
    }
    for (int which = 1; which < threads; which++)
        CHECK(pthread_create(&thread[which], NULL, go, &traffic[which]) == 0, "thread %d", which);
    go(&traffic[0]);
    for (int which = 1; which < threads; which++)
        pthread_join(thread[which], NULL);
    for (int which = 0; which < threads; which++) {
        struct traffic *t = &traffic[which];
        MPI_Win_free(&t->created);
        MPI_Win_free(&t->allocated);
        free(t->words);
        for (int comm = 0; comm < COMMS; comm++)
            MPI_Comm_free(&t->comm[comm]);
        MPI_Comm_free(&t->group);
    }
    MPI_Buffer_detach(&buffer, &provided);
    free(buffer);
    return check_end("traffic");
}
