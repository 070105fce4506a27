/* Files, together: two-phase access with all numbers of aggregators and rounds, split and nonblocking forms, shared pointers,
   and access in the order of the ranks. */
#include "check.h"

static char path[1024];
static MPI_Comm comm = MPI_COMM_WORLD;

static MPI_File fresh(const char *name, const char *nodes, const char *buffer, const char *mode)
{
    const char *folder = getenv("TMPDIR");
    MPI_File file;
    MPI_Info info;
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "/tmp", name);
    MPI_Info_create(&info);
    if (nodes)
        MPI_Info_set(info, "cb_nodes", nodes);
    if (buffer)
        MPI_Info_set(info, "cb_buffer_size", buffer);
    if (mode) {
        MPI_Info_set(info, "romio_cb_read", mode);
        MPI_Info_set(info, "romio_cb_write", mode);
    }
    SUCCEEDS(MPI_File_open(comm, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, info, &file));
    MPI_Info_free(&info);
    return file;
}

enum { ELEMENTS = 3000 };

/* The number in place `index` of what a rank writes in a round. */
static int number(int rank, int round, int index)
{
    return (int)(check_mix((uint64_t)rank * 1000003 + (uint64_t)round * 101 + (uint64_t)index) & 0x7fffffff);
}

/* Rank r sees the ints r, r + size, r + 2 size, ...: every form of collective access writes and reads them. */
static void strided(const char *nodes, const char *buffer, const char *mode)
{
    MPI_File file = fresh("strided", nodes, buffer, mode);
    MPI_Datatype one, filetype, every_other;
    MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){(MPI_Aint)sizeof(int) * check_rank}, MPI_INT, &one);
    MPI_Type_create_resized(one, 0, (MPI_Aint)sizeof(int) * check_size, &filetype);
    MPI_Type_commit(&filetype);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_other);
    MPI_Type_commit(&every_other);
    SUCCEEDS(MPI_File_set_view(file, 20, MPI_INT, filetype, "native", MPI_INFO_NULL));
    static int out[ELEMENTS], spread[2 * ELEMENTS], in[ELEMENTS + 10];
    for (int form = 0; form < 6; form++) {
        MPI_Status status;
        MPI_Request request;
        int count;
        for (int index = 0; index < ELEMENTS; index++)
            spread[2 * index] = out[index] = number(check_rank, form, index);
        SUCCEEDS(MPI_File_seek(file, 0, MPI_SEEK_SET));
        switch (form) {
        case 0: SUCCEEDS(MPI_File_write_all(file, out, ELEMENTS, MPI_INT, &status)); break;
        case 1: SUCCEEDS(MPI_File_write_at_all(file, 0, spread, ELEMENTS, every_other, &status)); break;
        case 2:
            SUCCEEDS(MPI_File_iwrite_all(file, out, ELEMENTS, MPI_INT, &request));
            SUCCEEDS(MPI_Wait(&request, &status));
            break;
        case 3:
            SUCCEEDS(MPI_File_iwrite_at_all(file, 0, spread, ELEMENTS, every_other, &request));
            SUCCEEDS(MPI_Wait(&request, &status));
            break;
        case 4:
            SUCCEEDS(MPI_File_write_all_begin(file, out, ELEMENTS, MPI_INT));
            SUCCEEDS(MPI_File_write_all_end(file, out, &status));
            break;
        default:
            SUCCEEDS(MPI_File_write_at_all_begin(file, 0, spread, ELEMENTS, every_other));
            SUCCEEDS(MPI_File_write_at_all_end(file, spread, &status));
        }
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK_EQUAL(count, ELEMENTS);
        MPI_Offset size;
        MPI_Barrier(comm);
        SUCCEEDS(MPI_File_get_size(file, &size));
        CHECK_EQUAL(size, 20 + (long)sizeof(int) * ELEMENTS * check_size);
        /* Ten more than there are. */
        memset(in, -1, sizeof in);
        SUCCEEDS(MPI_File_seek(file, 0, MPI_SEEK_SET));
        switch (form) {
        case 0: SUCCEEDS(MPI_File_read_all(file, in, ELEMENTS + 10, MPI_INT, &status)); break;
        case 1: SUCCEEDS(MPI_File_read_at_all(file, 0, in, ELEMENTS + 10, MPI_INT, &status)); break;
        case 2:
            SUCCEEDS(MPI_File_iread_all(file, in, ELEMENTS + 10, MPI_INT, &request));
            SUCCEEDS(MPI_Wait(&request, &status));
            break;
        case 3:
            SUCCEEDS(MPI_File_iread_at_all(file, 0, in, ELEMENTS + 10, MPI_INT, &request));
            SUCCEEDS(MPI_Wait(&request, &status));
            break;
        case 4:
            SUCCEEDS(MPI_File_read_all_begin(file, in, ELEMENTS + 10, MPI_INT));
            SUCCEEDS(MPI_File_read_all_end(file, in, &status));
            break;
        default:
            SUCCEEDS(MPI_File_read_at_all_begin(file, 0, in, ELEMENTS + 10, MPI_INT));
            SUCCEEDS(MPI_File_read_at_all_end(file, in, &status));
        }
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK_EQUAL(count, ELEMENTS);
        for (int index = 0; index < ELEMENTS; index++)
            CHECK(in[index] == number(check_rank, form, index), "form %d, int %d is %d", form, index, in[index]);
        CHECK_EQUAL(in[ELEMENTS], -1);
        MPI_Barrier(comm);
    }
    /* Processes that take no part, and one that reads what another wrote. */
    MPI_Status status;
    int count;
    SUCCEEDS(MPI_File_read_at_all(file, 5, in, check_rank == 0 ? 7 : 0, MPI_INT, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQUAL(count, check_rank == 0 ? 7 : 0);
    if (check_rank == 0)
        CHECK_EQUAL(in[6], number(0, 5, 11));
    SUCCEEDS(MPI_File_set_view(file, 20, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_read_at_all(file, 0, in, ELEMENTS, MPI_INT, &status));
    for (int index = 0; index < ELEMENTS; index++)
        CHECK_EQUAL(in[index], number(index % check_size, 5, index / check_size));
    MPI_Type_free(&one);
    MPI_Type_free(&filetype);
    MPI_Type_free(&every_other);
    SUCCEEDS(MPI_File_close(&file));
}

/* A box of a two-dimensional array for each rank, in both directions. */
static void boxes(void)
{
    enum { ROWS = 24, COLUMNS = 60 };
    int columns = COLUMNS / check_size, last = check_rank == check_size - 1;
    int width = last ? COLUMNS - columns * check_rank : columns;
    MPI_File file = fresh("boxes", "2", "1000", NULL);
    MPI_Datatype box;
    MPI_Type_create_subarray(2, (int[]){ROWS, COLUMNS}, (int[]){ROWS, width}, (int[]){0, columns * check_rank}, MPI_ORDER_C,
                             MPI_DOUBLE, &box);
    MPI_Type_commit(&box);
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_DOUBLE, box, "native", MPI_INFO_NULL));
    static double mine[ROWS * COLUMNS], all[ROWS * COLUMNS];
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < width; column++)
            mine[row * width + column] = row * 1000 + columns * check_rank + column;
    SUCCEEDS(MPI_File_write_all(file, mine, ROWS * width, MPI_DOUBLE, MPI_STATUS_IGNORE));
    MPI_Barrier(comm);
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_read_at(file, 0, all, ROWS * COLUMNS, MPI_DOUBLE, MPI_STATUS_IGNORE));
    for (int place = 0; place < ROWS * COLUMNS; place++)
        CHECK(all[place] == place / COLUMNS * 1000 + place % COLUMNS, "place %d is %g", place, all[place]);
    MPI_Type_free(&box);
    SUCCEEDS(MPI_File_close(&file));
}

/* Records that everybody writes at the shared pointer: each is there once, whatever their order. */
static void shared_pointer(void)
{
    enum { RECORDS = 60, LENGTH = 25 };
    MPI_File file = fresh("shared", NULL, NULL, NULL);
    int record[LENGTH];
    signed char seen[64 * RECORDS] = {0};
    MPI_Request request;
    MPI_Status status;
    MPI_Offset position;
    int count;
    SUCCEEDS(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int index = 0; index < RECORDS; index++) {
        for (int place = 0; place < LENGTH; place++)
            record[place] = check_rank * RECORDS + index;
        if (index % 3 == 0) {
            SUCCEEDS(MPI_File_iwrite_shared(file, record, LENGTH, MPI_INT, &request));
            SUCCEEDS(MPI_Wait(&request, &status));
        } else {
            SUCCEEDS(MPI_File_write_shared(file, record, LENGTH, MPI_INT, &status));
        }
    }
    MPI_Barrier(comm);
    SUCCEEDS(MPI_File_get_position_shared(file, &position));
    CHECK_EQUAL(position, RECORDS * LENGTH * check_size);
    MPI_Barrier(comm);
    SUCCEEDS(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    /* Everybody reads until nothing is left; together they have seen each record once. */
    for (;;) {
        SUCCEEDS(MPI_File_read_shared(file, record, LENGTH, MPI_INT, &status));
        MPI_Get_count(&status, MPI_INT, &count);
        if (count == 0)
            break;
        CHECK_EQUAL(count, LENGTH);
        for (int place = 1; place < LENGTH; place++)
            CHECK_EQUAL(record[place], record[0]);
        CHECK(record[0] >= 0 && record[0] < check_size * RECORDS, "record %d", record[0]);
        seen[record[0]]++;
    }
    MPI_Allreduce(MPI_IN_PLACE, seen, check_size * RECORDS, MPI_SIGNED_CHAR, MPI_SUM, comm);
    for (int index = 0; index < check_size * RECORDS; index++)
        CHECK(seen[index] == 1, "record %d was seen %d times", index, seen[index]);
    SUCCEEDS(MPI_File_seek_shared(file, -LENGTH, MPI_SEEK_END));
    SUCCEEDS(MPI_File_get_position_shared(file, &position));
    CHECK_EQUAL(position, (RECORDS * check_size - 1) * LENGTH);
    if (check_size > 1) {
        int class;
        MPI_Error_class(MPI_File_seek_shared(file, check_rank, MPI_SEEK_SET), &class);
        CHECK_EQUAL(class, MPI_ERR_NOT_SAME);
    }
    SUCCEEDS(MPI_File_close(&file));
}

static void ordered(void)
{
    MPI_File file = fresh("ordered", NULL, NULL, NULL);
    int numbers[64], position = 0;
    MPI_Status status;
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int round = 0; round < 10; round++) {
        int count = (check_rank + round) % 5;
        for (int index = 0; index < count; index++)
            numbers[index] = round * 10000 + check_rank * 100 + index;
        if (round % 2) {
            SUCCEEDS(MPI_File_write_ordered_begin(file, numbers, count, MPI_INT));
            SUCCEEDS(MPI_File_write_ordered_end(file, numbers, &status));
        } else {
            SUCCEEDS(MPI_File_write_ordered(file, numbers, count, MPI_INT, &status));
        }
    }
    MPI_Barrier(comm);
    for (int round = 0; round < 10; round++)
        for (int rank = 0; rank < check_size; rank++)
            for (int index = 0; index < (rank + round) % 5; index++) {
                SUCCEEDS(MPI_File_read_at(file, position++, numbers, 1, MPI_INT, &status));
                CHECK_EQUAL(numbers[0], round * 10000 + rank * 100 + index);
            }
    SUCCEEDS(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    int count = check_rank % 5, got;
    SUCCEEDS(MPI_File_read_ordered(file, numbers, count, MPI_INT, &status));
    MPI_Get_count(&status, MPI_INT, &got);
    CHECK_EQUAL(got, count);
    for (int index = 0; index < count; index++)
        CHECK_EQUAL(numbers[index], check_rank * 100 + index);
    count = (check_rank + 1) % 5;
    SUCCEEDS(MPI_File_read_ordered_begin(file, numbers, count, MPI_INT));
    /* One split access at a time. */
    int class;
    MPI_Error_class(MPI_File_read_all_begin(file, numbers, 1, MPI_INT), &class);
    CHECK_EQUAL(class, MPI_ERR_IO);
    MPI_Error_class(MPI_File_read_all_end(file, numbers, &status), &class);
    CHECK_EQUAL(class, MPI_ERR_IO);
    SUCCEEDS(MPI_File_read_ordered_end(file, numbers, &status));
    if (count > 0)
        CHECK_EQUAL(numbers[0], 10000 + check_rank * 100);
    SUCCEEDS(MPI_File_close(&file));
}

/* A wrong argument at one rank is an error at all, and the file goes on. */
static void one_is_wrong(void)
{
    MPI_File file = fresh("wrong", NULL, NULL, NULL);
    int class, numbers[4] = {1, 2, 3, 4};
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    int code = MPI_File_write_at_all(file, check_rank == check_size - 1 ? -1 : 0, numbers, 4, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(code != MPI_SUCCESS, "an offset of -1 at the last rank was taken");
    MPI_Error_class(code, &class);
    CHECK_EQUAL(class, MPI_ERR_ARG);
    SUCCEEDS(MPI_File_write_at_all(file, 4 * check_rank, numbers, 4, MPI_INT, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_close(&file));
}

static void sequential(void)
{
    MPI_File file;
    int class, number = check_rank;
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/sequential", folder ? folder : "/tmp");
    int amode = MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL;
    SUCCEEDS(MPI_File_open(comm, path, amode, MPI_INFO_NULL, &file));
    SUCCEEDS(MPI_File_write_ordered(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Error_class(MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), &class);
    CHECK_EQUAL(class, MPI_ERR_UNSUPPORTED_OPERATION);
    SUCCEEDS(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    number += 100;
    SUCCEEDS(MPI_File_write_ordered(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_close(&file));
    amode = MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE;
    SUCCEEDS(MPI_File_open(comm, path, amode, MPI_INFO_NULL, &file));
    for (int round = 0; round < 2; round++) {
        SUCCEEDS(MPI_File_read_ordered(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
        CHECK_EQUAL(number, check_rank + 100 * round);
    }
    SUCCEEDS(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    strided(NULL, NULL, NULL);
    strided("1", NULL, "enable");
    strided("2", "5000", "enable");
    strided("64", "777", "automatic");
    strided(NULL, NULL, "disable");
    boxes();
    shared_pointer();
    ordered();
    one_is_wrong();
    sequential();
    return check_end("files_collective");
}
