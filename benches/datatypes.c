/* Derived datatypes between two ranks: half round trip of 16 KiB to 1 MiB, as contiguous bytes; described by a datatype; and packed and unpacked by hand on
 * both sides. The layouts: blocks of 64 doubles with gaps of as many; a column of a matrix, single doubles 1 KiB apart; an array of structures of 20 bytes in
 * 24, as many whole ones as fit into the size; blocks of 1 to 4 doubles at irregular places. Results are microseconds, and for the datatype its ratio to contiguous bytes and to packing by hand, all three measured in turns. */
#include "bench.h"

#include <stddef.h>

enum { most = 1 << 20, spread = 128 * most };

struct particle {
    double position[2];
    int32_t kind;
    int32_t not_sent;
};

struct transfer {
    int bytes, count;
    MPI_Datatype type;
    unsigned char *out, *in, *packed;
    /* By hand; null when the data goes as it is. */
    void (*pack)(unsigned char *packed, const unsigned char *data, int bytes);
    void (*unpack)(unsigned char *data, const unsigned char *packed, int bytes);
};

/* Places and lengths of the irregular blocks, in doubles. */
static int *places, *lengths, blocks;

static void send(const struct transfer *transfer, int to)
{
    if (transfer->pack) {
        transfer->pack(transfer->packed, transfer->out, transfer->bytes);
        MPI_Send(transfer->packed, transfer->bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD);
    } else {
        MPI_Send(transfer->out, transfer->count, transfer->type, to, 0, MPI_COMM_WORLD);
    }
}

static void receive(const struct transfer *transfer, int from)
{
    if (transfer->unpack) {
        MPI_Recv(transfer->packed, transfer->bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        transfer->unpack(transfer->in, transfer->packed, transfer->bytes);
    } else {
        MPI_Recv(transfer->in, transfer->count, transfer->type, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void round_trip(void *context)
{
    if (rank == 0) {
        send(context, 1);
        receive(context, 1);
    } else if (rank == 1) {
        receive(context, 0);
        send(context, 0);
    }
}

static void pack_vector(unsigned char *packed, const unsigned char *data, int bytes)
{
    for (int block = 0; block < bytes / 512; block++)
        memcpy(packed + 512 * (size_t)block, data + 1024 * (size_t)block, 512);
}

static void unpack_vector(unsigned char *data, const unsigned char *packed, int bytes)
{
    for (int block = 0; block < bytes / 512; block++)
        memcpy(data + 1024 * (size_t)block, packed + 512 * (size_t)block, 512);
}

static void pack_column(unsigned char *packed, const unsigned char *data, int bytes)
{
    double *to = (double *)packed;
    const double *from = (const double *)data;
    for (int row = 0; row < bytes / 8; row++)
        to[row] = from[128 * (size_t)row];
}

static void unpack_column(unsigned char *data, const unsigned char *packed, int bytes)
{
    double *to = (double *)data;
    const double *from = (const double *)packed;
    for (int row = 0; row < bytes / 8; row++)
        to[128 * (size_t)row] = from[row];
}

static void pack_struct(unsigned char *packed, const unsigned char *data, int bytes)
{
    const struct particle *from = (const struct particle *)data;
    for (int index = 0; index < bytes / 20; index++) {
        memcpy(packed + 20 * (size_t)index, from[index].position, 16);
        memcpy(packed + 20 * (size_t)index + 16, &from[index].kind, 4);
    }
}

static void unpack_struct(unsigned char *data, const unsigned char *packed, int bytes)
{
    struct particle *to = (struct particle *)data;
    for (int index = 0; index < bytes / 20; index++) {
        memcpy(to[index].position, packed + 20 * (size_t)index, 16);
        memcpy(&to[index].kind, packed + 20 * (size_t)index + 16, 4);
    }
}

static void pack_indexed(unsigned char *packed, const unsigned char *data, int bytes)
{
    double *to = (double *)packed;
    const double *from = (const double *)data;
    (void)bytes;
    for (int block = 0; block < blocks; block++)
        for (int index = 0; index < lengths[block]; index++)
            *to++ = from[places[block] + index];
}

static void unpack_indexed(unsigned char *data, const unsigned char *packed, int bytes)
{
    double *to = (double *)data;
    const double *from = (const double *)packed;
    (void)bytes;
    for (int block = 0; block < blocks; block++)
        for (int index = 0; index < lengths[block]; index++)
            to[places[block] + index] = *from++;
}

/* Fills `places` and `lengths` with blocks that hold `bytes` together, the same on every rank. */
static void scatter_blocks(int bytes)
{
    uint64_t random = 88172645463325252u;
    int left = bytes / 8, place = 0;
    for (blocks = 0; left > 0; blocks++) {
        random = work(random, 1);
        int length = 1 + (int)(random % 4);
        lengths[blocks] = length < left ? length : left;
        places[blocks] = place;
        left -= lengths[blocks];
        place += lengths[blocks] + 1 + (int)(random / 4 % 4);
    }
}

static MPI_Datatype committed(MPI_Datatype type)
{
    MPI_Type_commit(&type);
    return type;
}

static MPI_Datatype vector_type(int bytes)
{
    MPI_Datatype type;
    MPI_Type_vector(bytes / 512, 64, 128, MPI_DOUBLE, &type);
    return committed(type);
}

static MPI_Datatype column_type(int bytes)
{
    MPI_Datatype type;
    MPI_Type_vector(bytes / 8, 1, 128, MPI_DOUBLE, &type);
    return committed(type);
}

static MPI_Datatype struct_type(int bytes)
{
    (void)bytes;
    MPI_Datatype fields, type;
    int counts[] = {2, 1};
    MPI_Aint places_in_struct[] = {0, offsetof(struct particle, kind)};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT32_T};
    MPI_Type_create_struct(2, counts, places_in_struct, types, &fields);
    MPI_Type_create_resized(fields, 0, sizeof(struct particle), &type);
    MPI_Type_free(&fields);
    return committed(type);
}

static MPI_Datatype indexed_type(int bytes)
{
    (void)bytes;
    MPI_Datatype type;
    MPI_Type_indexed(blocks, lengths, places, MPI_DOUBLE, &type);
    return committed(type);
}

static const struct layout {
    const char *name;
    MPI_Datatype (*type)(int bytes);
    void (*pack)(unsigned char *packed, const unsigned char *data, int bytes);
    void (*unpack)(unsigned char *data, const unsigned char *packed, int bytes);
} layouts[] = {
    {"vector", vector_type, pack_vector, unpack_vector},
    {"column", column_type, pack_column, unpack_column},
    {"struct", struct_type, pack_struct, unpack_struct},
    {"indexed", indexed_type, pack_indexed, unpack_indexed},
};

static void report(const char *form, const char *name, int bytes, double value, const char *unit)
{
    char full[64];
    snprintf(full, sizeof full, form, name);
    result(full, bytes, value, unit);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {16384, 131072, most};
    bench_start(&argc, &argv);
    unsigned char *out = memory(spread), *in = memory(spread), *packed = memory(most);
    places = malloc(most / 8 * sizeof *places);
    lengths = malloc(most / 8 * sizeof *lengths);
    for (int which = 0; which < 3; which++) {
        scatter_blocks(sizes[which]);
        for (size_t index = 0; index < sizeof layouts / sizeof *layouts; index++) {
            const struct layout *layout = &layouts[index];
            int count = layout->type == struct_type ? sizes[which] / 20 : 1;
            int bytes = layout->type == struct_type ? count * 20 : sizes[which];
            struct transfer contiguous = {bytes, bytes, MPI_BYTE, out, in, packed, NULL, NULL};
            struct transfer by_hand = contiguous, by_type = contiguous;
            by_hand.pack = layout->pack;
            by_hand.unpack = layout->unpack;
            by_type.type = layout->type(bytes);
            by_type.count = count;
            void *const transfers[] = {&contiguous, &by_hand, &by_type};
            double seconds[3];
            seconds_of_each(3, round_trip, transfers, seconds);
            report("by-hand-%s", layout->name, sizes[which], seconds[1] / 2 * 1e6, "us");
            report("datatype-%s", layout->name, sizes[which], seconds[2] / 2 * 1e6, "us");
            report("datatype-%s-to-contiguous", layout->name, sizes[which], seconds[2] / seconds[0], "ratio");
            report("datatype-%s-to-by-hand", layout->name, sizes[which], seconds[2] / seconds[1], "ratio");
            MPI_Type_free(&by_type.type);
        }
    }
    MPI_Finalize();
    return 0;
}
