/* Files: opening and its errors, explicit offsets, individual pointers, views, nonblocking access, atomic mode, representations. */
#include "check.h"

#include <stddef.h>
#include <sys/stat.h>

static char folder[512], path[1024];
static MPI_Comm comm = MPI_COMM_WORLD;

#define FAILS(call, wanted)                                                                         \
    do {                                                                                            \
        int class_ = -1, code_ = (call);                                                            \
        if (code_ != MPI_SUCCESS)                                                                   \
            MPI_Error_class(code_, &class_);                                                        \
        CHECK(class_ == (wanted), #call " gave class %d, expected " #wanted " (%d)", class_, wanted); \
    } while (0)

static const char *named(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void meet(void)
{
    MPI_Barrier(comm);
}

static long size_on_disk(const char *name)
{
    struct stat status;
    return stat(name, &status) == 0 ? (long)status.st_size : -1;
}

static void opening(void)
{
    MPI_File file;
    FAILS(MPI_File_open(comm, named("absent"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(MPI_ERR_NO_SUCH_FILE, text, &length);
    CHECK(strstr(text, "absent") && strstr(text, "MPI_File_open"), "the text is \"%s\"", text);
    FAILS(MPI_File_open(comm, named("x"), MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_open(comm, named("x"), MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_open(comm, folder, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    FAILS(MPI_File_open(comm, named("no/such/folder"), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file),
          MPI_ERR_NO_SUCH_FILE);
    if (check_size > 1) {
        int amode = check_rank == check_size - 1 ? MPI_MODE_RDWR : MPI_MODE_WRONLY;
        FAILS(MPI_File_open(comm, named("x"), amode | MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_NOT_SAME);
    }
    meet();
    CHECK_EQUAL(size_on_disk(named("x")), -1);
    SUCCEEDS(MPI_File_open(comm, named("x"), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &file));
    int amode, order;
    SUCCEEDS(MPI_File_get_amode(file, &amode));
    CHECK_EQUAL(amode, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL);
    MPI_Group group, world;
    SUCCEEDS(MPI_File_get_group(file, &group));
    MPI_Comm_group(comm, &world);
    MPI_Group_compare(group, world, &order);
    CHECK_EQUAL(order, MPI_IDENT);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    SUCCEEDS(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL, "a closed file is MPI_FILE_NULL");
    FAILS(MPI_File_close(&file), MPI_ERR_FILE);
    FAILS(MPI_File_open(comm, named("x"), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &file),
          MPI_ERR_FILE_EXISTS);
    meet();
    if (check_rank == 0) {
        SUCCEEDS(MPI_File_delete(named("x"), MPI_INFO_NULL));
        FAILS(MPI_File_delete(named("x"), MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    }
    meet();
}

static MPI_File fresh(const char *name, int more)
{
    MPI_File file;
    int amode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE | more;
    SUCCEEDS(MPI_File_open(comm, named(name), amode, MPI_INFO_NULL, &file));
    return file;
}

static void offsets_and_sizes(void)
{
    MPI_File file = fresh("sizes", 0);
    MPI_Offset size, position;
    MPI_Status status;
    int count, numbers[8];
    for (int index = 0; index < 8; index++)
        numbers[index] = 100 * check_rank + index;
    SUCCEEDS(MPI_File_write_at(file, 32 * check_rank, numbers, 8, MPI_INT, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQUAL(count, 8);
    meet();
    SUCCEEDS(MPI_File_get_size(file, &size));
    CHECK_EQUAL(size, 32 * check_size);
    int other = (check_rank + 1) % check_size, read[16];
    SUCCEEDS(MPI_File_read_at(file, 32 * other + 4, read, 3, MPI_INT, &status));
    for (int index = 0; index < 3; index++)
        CHECK_EQUAL(read[index], 100 * other + 1 + index);
    /* The last rank's part ends the file: what is not there is not counted, nor written. */
    memset(read, -1, sizeof read);
    SUCCEEDS(MPI_File_read_at(file, 32 * (check_size - 1) + 16, read, 16, MPI_INT, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQUAL(count, 4);
    CHECK_EQUAL(read[3], 100 * (check_size - 1) + 7);
    CHECK_EQUAL(read[4], -1);
    SUCCEEDS(MPI_File_read_at(file, 32 * check_size + 100, read, 1, MPI_INT, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQUAL(count, 0);
    FAILS(MPI_File_read_at(file, -1, read, 1, MPI_INT, &status), MPI_ERR_ARG);
    FAILS(MPI_File_read_at(file, INT64_MAX, read, 1, MPI_INT, &status), MPI_ERR_ARG);
    /* The individual pointer. */
    SUCCEEDS(MPI_File_seek(file, 8, MPI_SEEK_SET));
    SUCCEEDS(MPI_File_read(file, read, 2, MPI_INT, &status));
    CHECK_EQUAL(read[0], 2);
    SUCCEEDS(MPI_File_seek(file, 4, MPI_SEEK_CUR));
    SUCCEEDS(MPI_File_get_position(file, &position));
    CHECK_EQUAL(position, 20);
    SUCCEEDS(MPI_File_seek(file, -4, MPI_SEEK_END));
    SUCCEEDS(MPI_File_read(file, read, 5, MPI_INT, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQUAL(count, 1);
    SUCCEEDS(MPI_File_get_position(file, &position));
    CHECK_EQUAL(position, 32 * check_size);
    FAILS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    FAILS(MPI_File_seek(file, 0, 77), MPI_ERR_ARG);
    SUCCEEDS(MPI_File_set_size(file, 10));
    SUCCEEDS(MPI_File_preallocate(file, 50));
    SUCCEEDS(MPI_File_preallocate(file, 20));
    SUCCEEDS(MPI_File_get_size(file, &size));
    CHECK_EQUAL(size, 50);
    FAILS(MPI_File_set_size(file, -3), MPI_ERR_ARG);
    if (check_size > 1)
        FAILS(MPI_File_set_size(file, check_rank), MPI_ERR_NOT_SAME);
    SUCCEEDS(MPI_File_sync(file));
    SUCCEEDS(MPI_File_close(&file));
    CHECK_EQUAL(size_on_disk(named("sizes")), -1);
}

/* Everybody sees every check_size-th block of three ints, from byte 12 on. */
static void views(void)
{
    enum { BLOCK = 3, BLOCKS = 40 };
    MPI_File file = fresh("views", 0);
    MPI_Datatype block, part, filetype, memory;
    MPI_Type_contiguous(BLOCK, MPI_INT, &block);
    MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){(MPI_Aint)sizeof(int) * BLOCK * check_rank}, block, &part);
    MPI_Type_create_resized(part, 0, (MPI_Aint)sizeof(int) * BLOCK * check_size, &filetype);
    MPI_Type_commit(&filetype);
    MPI_Type_vector(BLOCK * BLOCKS, 1, 2, MPI_INT, &memory);
    MPI_Type_commit(&memory);
    SUCCEEDS(MPI_File_set_view(file, 12, MPI_INT, filetype, "native", MPI_INFO_NULL));
    int spread[2 * BLOCK * BLOCKS], dense[BLOCK * BLOCKS], count;
    MPI_Status status;
    memset(spread, -1, sizeof spread);
    for (int index = 0; index < BLOCK * BLOCKS; index++)
        spread[2 * index] = 1000 * check_rank + index;
    SUCCEEDS(MPI_File_write(file, spread, 1, memory, &status));
    MPI_Get_elements(&status, MPI_INT, &count);
    CHECK_EQUAL(count, BLOCK * BLOCKS);
    meet();
    CHECK_EQUAL(size_on_disk(path), 12 + (long)sizeof(int) * BLOCK * BLOCKS * check_size);
    FILE *plain = fopen(path, "rb");
    fseek(plain, 12, SEEK_SET);
    for (int index = 0; index < BLOCKS * check_size * BLOCK; index++) {
        int found, row = index / BLOCK;
        CHECK(fread(&found, sizeof found, 1, plain) == 1, "int %d is missing", index);
        CHECK_EQUAL(found, 1000 * (row % check_size) + row / check_size * BLOCK + index % BLOCK);
    }
    fclose(plain);
    SUCCEEDS(MPI_File_read_at(file, 4, dense, BLOCK * BLOCKS, MPI_INT, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQUAL(count, BLOCK * BLOCKS - 4);
    for (int index = 0; index < count; index++)
        CHECK_EQUAL(dense[index], 1000 * check_rank + 4 + index);
    memset(spread, -1, sizeof spread);
    SUCCEEDS(MPI_File_seek(file, 0, MPI_SEEK_SET));
    SUCCEEDS(MPI_File_read(file, spread, 1, memory, &status));
    for (int index = 0; index < BLOCK * BLOCKS; index++) {
        CHECK_EQUAL(spread[2 * index], 1000 * check_rank + index);
        CHECK_EQUAL(spread[2 * index + 1], -1);
    }
    MPI_Offset offset;
    SUCCEEDS(MPI_File_get_byte_offset(file, BLOCK + 1, &offset));
    CHECK_EQUAL(offset, 12 + (long)sizeof(int) * (BLOCK * (check_size + check_rank) + 1));
    SUCCEEDS(MPI_File_seek(file, 0, MPI_SEEK_END));
    SUCCEEDS(MPI_File_get_position(file, &offset));
    CHECK_EQUAL(offset, BLOCK * BLOCKS);
    MPI_Datatype etype, seen;
    char representation[MPI_MAX_DATAREP_STRING];
    SUCCEEDS(MPI_File_get_view(file, &offset, &etype, &seen, representation));
    CHECK(offset == 12 && etype == MPI_INT && strcmp(representation, "native") == 0, "view at %lld", (long long)offset);
    MPI_Aint low, extent;
    MPI_Type_get_extent(seen, &low, &extent);
    CHECK_EQUAL(extent, (long)sizeof(int) * BLOCK * check_size);
    MPI_Type_free(&seen);
    /* What a view must not be. */
    FAILS(MPI_File_set_view(file, -2, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    FAILS(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "roman", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    FAILS(MPI_File_write_at(file, 0, spread, 3, MPI_CHAR, &status), MPI_ERR_TYPE);
    MPI_Datatype backwards;
    MPI_Type_create_indexed_block(2, 1, (int[]){4, 0}, MPI_INT, &backwards);
    MPI_Type_commit(&backwards);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, backwards, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    MPI_Type_free(&backwards);
    MPI_Type_free(&block);
    MPI_Type_free(&part);
    MPI_Type_free(&filetype);
    MPI_Type_free(&memory);
    SUCCEEDS(MPI_File_close(&file));
}

/* A filetype that is made for one access may have an extent below its span (those of HDF5 do): the view shows it once. */
static void narrow_extent(void)
{
    MPI_File file = fresh("narrow", 0);
    MPI_Datatype data, filetype;
    MPI_Offset offset;
    int out[4], in[4];
    for (int index = 0; index < 4; index++)
        out[index] = 100 * check_rank + index;
    /* Two integers of each rank in either half of the file. */
    int places[2] = {2 * check_rank, 2 * check_size + 2 * check_rank};
    MPI_Type_create_indexed_block(2, 2, places, MPI_INT, &data);
    MPI_Type_create_resized(data, 0, sizeof(int), &filetype);
    MPI_Type_commit(&filetype);
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_INT, filetype, "native", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_write_at_all(file, 0, out, 4, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_EQUAL(size_on_disk(path), (long)sizeof(int) * 4 * check_size);
    for (int collective = 0; collective < 2; collective++) {
        memset(in, -1, sizeof in);
        SUCCEEDS(collective ? MPI_File_read_at_all(file, 0, in, 4, MPI_INT, MPI_STATUS_IGNORE)
                            : MPI_File_read_at(file, 0, in, 4, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(memcmp(in, out, sizeof in) == 0, "%d, %d, %d, %d", in[0], in[1], in[2], in[3]);
    }
    SUCCEEDS(MPI_File_get_byte_offset(file, 3, &offset));
    CHECK_EQUAL(offset, sizeof(int) * (2 * check_size + 2 * check_rank + 1));
    /* A second one would lie between the data of the first. */
    FAILS(MPI_File_read_at(file, 1, in, 4, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    SUCCEEDS(MPI_File_close(&file));
    MPI_Type_free(&filetype);
    MPI_Type_free(&data);
}

static void nonblocking(void)
{
    enum { PIECES = 16, LENGTH = 20000 };
    MPI_File file = fresh("nonblocking", 0);
    static unsigned char out[PIECES][LENGTH], in[PIECES][LENGTH];
    MPI_Request requests[PIECES];
    MPI_Status statuses[PIECES];
    long start = (long)check_rank * PIECES * LENGTH;
    for (int index = 0; index < PIECES; index++) {
        fill_bytes(out[index], LENGTH, check_mix(100 * check_rank + index));
        SUCCEEDS(MPI_File_iwrite_at(file, start + index * LENGTH, out[index], LENGTH, MPI_BYTE, &requests[index]));
    }
    SUCCEEDS(MPI_Waitall(PIECES, requests, statuses));
    SUCCEEDS(MPI_File_seek(file, start, MPI_SEEK_SET));
    for (int index = 0; index < PIECES; index++)
        SUCCEEDS(MPI_File_iread(file, in[index], LENGTH, MPI_BYTE, &requests[index]));
    MPI_Offset position;
    SUCCEEDS(MPI_File_get_position(file, &position));
    CHECK_EQUAL(position, start + PIECES * LENGTH);
    for (int done = 0; !done;)
        SUCCEEDS(MPI_Testall(PIECES, requests, &done, statuses));
    for (int index = 0; index < PIECES; index++) {
        int count;
        MPI_Get_count(&statuses[index], MPI_BYTE, &count);
        CHECK_EQUAL(count, LENGTH);
        CHECK_EQUAL(wrong_byte(in[index], LENGTH, check_mix(100 * check_rank + index)), -1);
    }
    SUCCEEDS(MPI_File_close(&file));
}

static int handled, handled_code;

static void handler(MPI_File *file, int *code, ...)
{
    (void)file;
    handled++;
    handled_code = *code;
}

static void errors(void)
{
    MPI_File file;
    MPI_Status status;
    int number = 7;
    MPI_Errhandler own, found;
    SUCCEEDS(MPI_File_get_errhandler(MPI_FILE_NULL, &found));
    CHECK(found == MPI_ERRORS_RETURN, "the default handler of files returns");
    MPI_Errhandler_free(&found);
    /* What is open for one thing only. */
    file = fresh("errors", 0);
    SUCCEEDS(MPI_File_close(&file));
    SUCCEEDS(MPI_File_open(comm, named("errors"), MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    SUCCEEDS(MPI_File_write_at(file, 0, &number, 1, MPI_INT, &status));
    FAILS(MPI_File_read_at(file, 0, &number, 1, MPI_INT, &status), MPI_ERR_ACCESS);
    SUCCEEDS(MPI_File_close(&file));
    SUCCEEDS(MPI_File_open(comm, named("errors"), MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    FAILS(MPI_File_write_at(file, 0, &number, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    FAILS(MPI_File_set_size(file, 0), MPI_ERR_READ_ONLY);
    SUCCEEDS(MPI_File_create_errhandler(handler, &own));
    SUCCEEDS(MPI_File_set_errhandler(file, own));
    FAILS(MPI_File_iwrite_at(file, 0, &number, 1, MPI_INT, &(MPI_Request){MPI_REQUEST_NULL}), MPI_ERR_READ_ONLY);
    CHECK(handled == 1 && handled_code == MPI_ERR_READ_ONLY, "handled %d times, code %d", handled, handled_code);
    SUCCEEDS(MPI_File_call_errhandler(file, MPI_ERR_OTHER));
    CHECK(handled == 2 && handled_code == MPI_ERR_OTHER, "handled %d times, code %d", handled, handled_code);
    SUCCEEDS(MPI_File_close(&file));
    /* A full device, at once and later. */
    static char data[100000];
    MPI_Request request;
    SUCCEEDS(MPI_File_open(MPI_COMM_SELF, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    FAILS(MPI_File_write(file, data, 1, MPI_CHAR, &status), MPI_ERR_NO_SPACE);
    SUCCEEDS(MPI_File_set_errhandler(file, own));
    SUCCEEDS(MPI_File_iwrite_at(file, 0, data, sizeof data, MPI_CHAR, &request));
    FAILS(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE);
    CHECK(handled == 3 && handled_code == MPI_ERR_NO_SPACE, "handled %d times, code %d", handled, handled_code);
    SUCCEEDS(MPI_File_close(&file));
    SUCCEEDS(MPI_File_open(comm, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    FAILS(MPI_File_write_all(file, data, 10, MPI_CHAR, &status), MPI_ERR_NO_SPACE);
    SUCCEEDS(MPI_File_close(&file));
    MPI_Errhandler_free(&own);
}

/* Ranks write one range in different numbers; who reads it sees one number only. */
static void atomic_mode(void)
{
    enum { INTS = 40000, ROUNDS = 6 };
    MPI_File file = fresh("atomic", 0);
    static int numbers[INTS], seen[INTS];
    int flag;
    SUCCEEDS(MPI_File_get_atomicity(file, &flag));
    CHECK_EQUAL(flag, 0);
    SUCCEEDS(MPI_File_set_atomicity(file, 1));
    SUCCEEDS(MPI_File_get_atomicity(file, &flag));
    CHECK_EQUAL(flag, 1);
    if (check_size > 1)
        FAILS(MPI_File_set_atomicity(file, check_rank == 0), MPI_ERR_NOT_SAME);
    for (int index = 0; index < INTS; index++)
        numbers[index] = check_rank;
    SUCCEEDS(MPI_File_write_at(file, 0, numbers, INTS, MPI_INT, MPI_STATUS_IGNORE));
    meet();
    for (int round = 0; round < ROUNDS; round++) {
        SUCCEEDS(MPI_File_write_at(file, 0, numbers, INTS, MPI_INT, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_File_read_at(file, 0, seen, INTS, MPI_INT, MPI_STATUS_IGNORE));
        for (int index = 1; index < INTS; index++)
            CHECK(seen[index] == seen[0], "int %d is %d, int 0 is %d", index, seen[index], seen[0]);
    }
    SUCCEEDS(MPI_File_close(&file));
}

static void append_and_hints(void)
{
    MPI_File file;
    MPI_Info info, used;
    char value[64];
    int found;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_nodes", "1");
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "unknown_hint", "x");
    SUCCEEDS(MPI_File_open(comm, named("append"), MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
    SUCCEEDS(MPI_File_get_info(file, &used));
    MPI_Info_get(used, "romio_cb_write", sizeof value - 1, value, &found);
    CHECK(found && strcmp(value, "enable") == 0, "romio_cb_write is %s", found ? value : "not told");
    MPI_Info_get(used, "unknown_hint", sizeof value - 1, value, &found);
    CHECK_EQUAL(found, 0);
    MPI_Info_free(&used);
    MPI_Info_free(&info);
    SUCCEEDS(MPI_File_set_size(file, 5));
    SUCCEEDS(MPI_File_close(&file));
    MPI_Offset position;
    int amode = MPI_MODE_RDWR | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE;
    SUCCEEDS(MPI_File_open(comm, named("append"), amode, MPI_INFO_NULL, &file));
    SUCCEEDS(MPI_File_get_position(file, &position));
    CHECK_EQUAL(position, 5);
    SUCCEEDS(MPI_File_get_position_shared(file, &position));
    CHECK_EQUAL(position, 5);
    SUCCEEDS(MPI_File_close(&file));
}

static int extent_of(MPI_Datatype datatype, MPI_Aint *extent, void *state)
{
    int size;
    (void)state;
    MPI_Type_size(datatype, &size);
    *extent = size;
    return MPI_SUCCESS;
}

static int flip(void *memory, MPI_Datatype datatype, int count, void *data, int to_file)
{
    MPI_Aint low, extent;
    int size;
    MPI_Type_get_extent(datatype, &low, &extent);
    MPI_Type_size(datatype, &size);
    for (int item = 0; item < count; item++)
        for (int byte = 0; byte < size; byte++) {
            unsigned char *here = (unsigned char *)memory + item * extent + byte;
            unsigned char *there = (unsigned char *)data + item * size + byte;
            if (to_file)
                *there = *here ^ 0x55;
            else
                *here = *there ^ 0x55;
        }
    return MPI_SUCCESS;
}

static int flip_read(void *memory, MPI_Datatype datatype, int count, void *data, MPI_Offset position, void *state)
{
    ++*(int *)state;
    return position == 0 ? flip(memory, datatype, count, data, 0) : MPI_ERR_OTHER;
}

static int flip_write(void *memory, MPI_Datatype datatype, int count, void *data, MPI_Offset position, void *state)
{
    ++*(int *)state;
    return position == 0 ? flip(memory, datatype, count, data, 1) : MPI_ERR_OTHER;
}

static void representations(void)
{
    static int calls;
    MPI_File file = fresh("representations", 0);
    MPI_Status status;
    unsigned char raw[64];
    int count, number = 0x01020304, back = 0;
    long longs[3] = {1, -2, 3}, found[4] = {9, 9, 9, 9};
    MPI_Aint extent;
    SUCCEEDS(MPI_File_set_view(file, 16 * check_rank, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    CHECK_EQUAL(extent, 4);
    SUCCEEDS(MPI_File_write(file, &number, 1, MPI_INT, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQUAL(count, 1);
    SUCCEEDS(MPI_File_write(file, longs, 3, MPI_LONG, &status));
    MPI_Get_count(&status, MPI_LONG, &count);
    CHECK_EQUAL(count, 3);
    meet();
    SUCCEEDS(MPI_File_read_at(file, 1, found, 3, MPI_LONG, &status));
    CHECK(found[0] == 1 && found[1] == -2 && found[2] == 3 && found[3] == 9, "%ld %ld %ld", found[0], found[1], found[2]);
    SUCCEEDS(MPI_File_set_view(file, 16 * (check_size - 1), MPI_BYTE, MPI_BYTE, "internal", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_read_at(file, 0, raw, 64, MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQUAL(count, 16);
    CHECK(memcmp(raw, "\1\2\3\4\0\0\0\1\377\377\377\376\0\0\0\3", 16) == 0, "the bytes in the file are others");
    /* At the end of the file a pair of long and short comes in part. */
    MPI_Datatype pair;
    struct pair {
        long first;
        short second;
    } pairs[3];
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){offsetof(struct pair, first), offsetof(struct pair, second)},
                           (MPI_Datatype[]){MPI_LONG, MPI_SHORT}, &pair);
    MPI_Type_create_resized(pair, 0, sizeof(struct pair), &pair);
    MPI_Type_commit(&pair);
    SUCCEEDS(MPI_File_set_view(file, 16 * (check_size - 1), MPI_SHORT, MPI_SHORT, "external32", MPI_INFO_NULL));
    memset(pairs, 0, sizeof pairs);
    SUCCEEDS(MPI_File_read_at(file, 0, pairs, 3, pair, &status));
    MPI_Get_elements(&status, pair, &count);
    CHECK_EQUAL(count, 5);
    CHECK(pairs[0].first == 0x01020304 && pairs[0].second == 0 && pairs[1].first == 0x1ffff && pairs[1].second == -2,
          "%lx %x %lx %x", pairs[0].first, pairs[0].second, pairs[1].first, pairs[1].second);
    CHECK(pairs[2].first == 3 && pairs[2].second == 0, "%lx %x", pairs[2].first, pairs[2].second);
    MPI_Type_free(&pair);
    /* A long that external32 has no room for. */
    long large = 1L << 40;
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
    FAILS(MPI_File_write_at(file, 0, &large, 1, MPI_LONG, &status), MPI_ERR_CONVERSION);
    /* The program's own. */
    SUCCEEDS(MPI_Register_datarep("flipped", flip_read, flip_write, extent_of, &calls));
    FAILS(MPI_Register_datarep("flipped", flip_read, flip_write, extent_of, &calls), MPI_ERR_DUP_DATAREP);
    FAILS(MPI_Register_datarep("native", flip_read, flip_write, extent_of, &calls), MPI_ERR_DUP_DATAREP);
    SUCCEEDS(MPI_File_set_view(file, 64, MPI_INT, MPI_INT, "flipped", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_write_at(file, check_rank, &number, 1, MPI_INT, &status));
    SUCCEEDS(MPI_File_read_at(file, check_rank, &back, 1, MPI_INT, &status));
    CHECK(back == number && calls == 2, "%x after %d calls", back, calls);
    SUCCEEDS(MPI_File_set_view(file, 64, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_read_at(file, check_rank, &back, 1, MPI_INT, &status));
    CHECK_EQUAL(back, number ^ 0x55555555);
    SUCCEEDS(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s", temporary ? temporary : "/tmp");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    opening();
    offsets_and_sizes();
    views();
    narrow_extent();
    nonblocking();
    errors();
    atomic_mode();
    append_and_hints();
    representations();
    return check_end("files");
}
