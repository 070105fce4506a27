/* Buffers with gaps on either side or on both, of every length class, whoever waits and whoever computes. */
#include "check.h"

enum { kinds = 5, situations = 7, most = 3000000 };

static const char *kind_names[kinds] = {"bytes", "small blocks", "large blocks", "structures", "irregular"};
/* Bytes of data in one element. All divide 6000. */
static const int kind_bytes[kinds] = {1, 12, 2000, 12, 120};
static MPI_Datatype kind_types[kinds];
static char *out, *in, *packed;

static void make_types(void)
{
    MPI_Datatype plain;
    kind_types[0] = MPI_BYTE;
    MPI_Type_vector(3, 4, 9, MPI_BYTE, &plain);
    MPI_Type_create_resized(plain, 0, 30, &kind_types[1]);
    MPI_Type_free(&plain);
    MPI_Type_contiguous(2000, MPI_BYTE, &plain);
    MPI_Type_create_resized(plain, 0, 2999, &kind_types[2]);
    MPI_Type_free(&plain);
    int lengths[] = {5, 4, 3};
    MPI_Aint places[] = {8, 1, 20};
    MPI_Type_create_hindexed(3, lengths, places, MPI_BYTE, &kind_types[3]);
    int blocks[15], starts[15];
    for (int block = 0; block < 15; block++) {
        blocks[block] = block + 1;
        starts[block] = (block * 7 % 15) * 20 + block % 3;
    }
    MPI_Type_indexed(15, blocks, starts, MPI_BYTE, &kind_types[4]);
    for (int kind = 1; kind < kinds; kind++)
        MPI_Type_commit(&kind_types[kind]);
}

static size_t span(int kind, int bytes)
{
    MPI_Aint low, extent;
    MPI_Type_get_extent(kind_types[kind], &low, &extent);
    return (size_t)(bytes / kind_bytes[kind]) * (size_t)extent + 64;
}

static void fill(int kind, int bytes, uint64_t seed)
{
    int position = 0;
    fill_bytes(packed, (size_t)bytes, seed);
    memset(out, 0x11, span(kind, bytes));
    MPI_Unpack(packed, bytes, &position, out, bytes / kind_bytes[kind], kind_types[kind], MPI_COMM_WORLD);
}

static void clear(int kind, int bytes) { memset(in, 0xee, span(kind, bytes)); }

/* What came is what was sent, and nothing beside it has changed. */
static void check(int kind, int room, int bytes, uint64_t seed, const char *where)
{
    int position = 0, count = room / kind_bytes[kind];
    MPI_Pack(in, count, kind_types[kind], packed, room, &position, MPI_COMM_WORLD);
    long long wrong = wrong_byte(packed, (size_t)bytes / 8 * 8, seed);
    CHECK(wrong < 0, "%s of %d bytes into %s: byte %lld", where, bytes, kind_names[kind], wrong);
    for (int byte = bytes; byte < room; byte++)
        CHECK((unsigned char)packed[byte] == 0xee, "%s of %d bytes into %s: byte %d behind the message", where, bytes, kind_names[kind], byte);
    memset(packed, 0xee, (size_t)room);
    position = 0;
    MPI_Unpack(packed, room, &position, in, count, kind_types[kind], MPI_COMM_WORLD);
    size_t length = span(kind, room);
    for (size_t byte = 0; byte < length; byte++)
        CHECK((unsigned char)in[byte] == 0xee, "%s of %d bytes into %s: byte %zu of a gap was written", where, bytes, kind_names[kind], byte);
}

/* From the even rank of a pair to the odd one. */
static void transfer(int from, int to, int bytes, int situation, int peer, uint64_t seed)
{
    static const char *names[situations] = {"a blocking message", "a posted receive", "an unexpected message", "a receiver that computes",
                                            "a sender that computes", "a matched probe", "a synchronous message"};
    int sends = check_rank % 2 == 0, count = bytes / kind_bytes[sends ? from : to];
    MPI_Datatype type = kind_types[sends ? from : to];
    MPI_Request request;
    MPI_Status status;
    if (sends) {
        fill(from, bytes, seed);
        if (situation == 1 || situation == 3 || situation == 6)
            MPI_Recv(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (situation == 2 || situation == 4) {
            MPI_Isend(out, count, type, peer, 0, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            if (situation == 4)
                sleep_ms(3);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (situation == 6) {
            MPI_Ssend(out, count, type, peer, 0, MPI_COMM_WORLD);
        } else {
            MPI_Send(out, count, type, peer, 0, MPI_COMM_WORLD);
        }
        return;
    }
    clear(to, bytes);
    if (situation == 1 || situation == 3) {
        MPI_Irecv(in, count, type, peer, 0, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        if (situation == 3)
            sleep_ms(3);
        MPI_Wait(&request, &status);
    } else if (situation == 5) {
        MPI_Message message;
        MPI_Mprobe(peer, 0, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(in, count, type, &message, &status);
    } else {
        if (situation == 2)
            MPI_Recv(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (situation == 6)
            MPI_Send(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        MPI_Recv(in, count, type, peer, 0, MPI_COMM_WORLD, &status);
        if (situation == 4)
            MPI_Recv(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    int received;
    MPI_Get_count(&status, MPI_BYTE, &received);
    CHECK_EQUAL(received, bytes);
    check(to, bytes, bytes, seed, names[situation]);
}

/* Less comes than there is room for, and more. */
static void other_lengths(int kind, int peer)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int bytes = 60; bytes <= 600000; bytes *= 100) {
        if (bytes % kind_bytes[kind] != 0 || bytes / 2 % kind_bytes[kind] != 0)
            continue;
        int count = bytes / kind_bytes[kind];
        if (check_rank % 2 == 0) {
            fill(0, bytes, 5);
            MPI_Send(out, bytes / 2, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
            fill(kind, bytes, 6);
            MPI_Send(out, count, kind_types[kind], peer, 0, MPI_COMM_WORLD);
        } else {
            clear(kind, bytes);
            SUCCEEDS(MPI_Recv(in, count, kind_types[kind], peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            check(kind, bytes, bytes / 2, 5, "half a message");
            clear(kind, bytes);
            int code = MPI_Recv(in, count / 2, kind_types[kind], peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_EQUAL(code, MPI_ERR_TRUNCATE);
            size_t length = span(kind, bytes), after = span(kind, bytes / 2);
            for (size_t byte = after; byte < length; byte++)
                CHECK((unsigned char)in[byte] == 0xee, "a truncated message of %d bytes: byte %zu", bytes, byte);
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void to_myself(int from, int to, int bytes)
{
    MPI_Request request;
    fill(from, bytes, 77);
    clear(to, bytes);
    MPI_Irecv(in, bytes / kind_bytes[to], kind_types[to], 0, 0, MPI_COMM_SELF, &request);
    MPI_Send(out, bytes / kind_bytes[from], kind_types[from], 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(to, bytes, bytes, 77, "a message to itself");
    clear(to, bytes);
    MPI_Isend(out, bytes / kind_bytes[from], kind_types[from], 0, 0, MPI_COMM_SELF, &request);
    MPI_Recv(in, bytes / kind_bytes[to], kind_types[to], 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(to, bytes, bytes, 77, "an unexpected message to itself");
}

/* Both ways at once, many in flight, and the type freed before they are over. */
static void flood(int peer)
{
    enum { messages = 40, bytes = 120000 };
    MPI_Request requests[2 * messages];
    MPI_Datatype copy;
    static char received[messages][30 * bytes / 12];
    MPI_Type_dup(kind_types[1], &copy);
    fill(4, bytes, 9);
    memset(received, 0xee, sizeof received);
    for (int message = 0; message < messages; message++)
        MPI_Irecv(received[message], bytes / 12, copy, peer, message, MPI_COMM_WORLD, &requests[message]);
    for (int message = 0; message < messages; message++)
        MPI_Isend(out, bytes / 120, kind_types[4], peer, messages - 1 - message, MPI_COMM_WORLD, &requests[messages + message]);
    MPI_Type_free(&copy);
    MPI_Waitall(2 * messages, requests, MPI_STATUSES_IGNORE);
    for (int message = 0; message < messages; message++) {
        memcpy(in, received[message], sizeof received[message]);
        memset(in + sizeof received[message], 0xee, 64);
        check(1, bytes, bytes, 9, "one of many messages");
    }
    /* One that nobody will send is taken back; its buffer is not touched. */
    MPI_Status status;
    int cancelled;
    clear(1, 600);
    MPI_Irecv(in, 50, kind_types[1], peer, 12345, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK_EQUAL(cancelled, 1);
    check(1, 600, 0, 0, "a cancelled receive");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    make_types();
    out = malloc(3 * most + 4096);
    in = malloc(3 * most + 4096);
    packed = malloc(most);
    static const int lengths[] = {12, 24, 36, 600, 6000, 24000, 66000, 300000, most};
    for (int from = 0; from < kinds; from++)
        for (int to = 0; to < kinds; to++)
            for (int which = 0; which < 9; which++) {
                int bytes = lengths[which];
                if (bytes % kind_bytes[from] != 0 || bytes % kind_bytes[to] != 0)
                    continue;
                if (bytes < most)
                    to_myself(from, to, bytes);
                int peer = check_rank ^ 1;
                for (int situation = 0; situation < situations && peer < check_size; situation++)
                    if (bytes < most || situation == (from + to) % situations)
                        transfer(from, to, bytes, situation, peer, (uint64_t)(bytes + situation));
            }
    if ((check_rank ^ 1) < check_size) {
        for (int kind = 1; kind < kinds; kind++)
            other_lengths(kind, check_rank ^ 1);
        flood(check_rank ^ 1);
    }
    for (int kind = 1; kind < kinds; kind++)
        MPI_Type_free(&kind_types[kind]);
    free(out);
    free(in);
    free(packed);
    return check_end("gaps");
}
