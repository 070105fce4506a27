/* Collectives on derived datatypes: columns, types with holes, lower bounds and negative extents; different types for the same data at the
   two ends; user operators on a structure with holes. */
#include "check.h"

#include <stddef.h>

enum { rows = 6, columns = 5 };

static int rank, size;

static int cell(int from, int row, int column) { return from * 1000 + row * 10 + column; }

static void matrix(int grid[rows][columns], int from)
{
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++)
            grid[row][column] = from < 0 ? -1 : cell(from, row, column);
}

/* A column of the matrix; the next one starts one int further on. */
static MPI_Datatype column_type(void)
{
    MPI_Datatype vector, column;
    MPI_Type_vector(rows, 1, columns, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, sizeof(int), &column);
    MPI_Type_commit(&column);
    MPI_Type_free(&vector);
    return column;
}

static void columns_and_rows(void)
{
    MPI_Datatype column = column_type();
    int grid[rows][columns], flat[columns * rows];
    for (int root = 0; root < size; root++) {
        /* Columns at the root, contiguous data elsewhere: the packed order is column by column. */
        matrix(grid, rank == root ? root : -1);
        if (rank == root)
            MPI_Bcast(grid, columns, column, root, MPI_COMM_WORLD);
        else {
            MPI_Bcast(flat, rows * columns, MPI_INT, root, MPI_COMM_WORLD);
            for (int index = 0; index < rows * columns; index++)
                CHECK_EQUAL(flat[index], cell(root, index % rows, index / rows));
        }
        /* And into columns. */
        matrix(grid, rank == root ? root : -1);
        MPI_Bcast(grid, 2, column, root, MPI_COMM_WORLD);
        for (int row = 0; row < rows; row++)
            for (int place = 0; place < columns; place++)
                CHECK_EQUAL(grid[row][place], rank == root || place < 2 ? cell(root, row, place) : -1);

        /* Every rank's column r goes to column r of the root's matrix of `size` columns. */
        int *wide = malloc(sizeof(int) * (size_t)(rows * size));
        for (int index = 0; index < rows * size; index++)
            wide[index] = -1;
        MPI_Datatype vector, wide_column;
        MPI_Type_vector(rows, 1, size, MPI_INT, &vector);
        MPI_Type_create_resized(vector, 0, sizeof(int), &wide_column);
        MPI_Type_commit(&wide_column);
        matrix(grid, rank);
        MPI_Gather(&grid[0][1], 1, column, wide, 1, wide_column, root, MPI_COMM_WORLD);
        if (rank == root)
            for (int row = 0; row < rows; row++)
                for (int from = 0; from < size; from++)
                    CHECK_EQUAL(wide[row * size + from], cell(from, row, 1));
        int back[rows];
        MPI_Scatter(wide, 1, wide_column, back, rows, MPI_INT, root, MPI_COMM_WORLD);
        for (int row = 0; row < rows; row++)
            CHECK_EQUAL(back[row], cell(rank, row, 1));
        for (int index = 0; index < rows * size; index++)
            wide[index] = -1;
        MPI_Allgather(&grid[0][2], 1, column, wide, 1, wide_column, MPI_COMM_WORLD);
        for (int row = 0; row < rows; row++)
            for (int from = 0; from < size; from++)
                CHECK_EQUAL(wide[row * size + from], cell(from, row, 2));
        /* A transposition over all ranks: column j goes to rank j, where it becomes row `from`. */
        int *turned = malloc(sizeof(int) * (size_t)(rows * size));
        for (int index = 0; index < rows * size; index++)
            wide[index] = rank * 100000 + index;
        MPI_Alltoall(wide, 1, wide_column, turned, rows, MPI_INT, MPI_COMM_WORLD);
        for (int from = 0; from < size; from++)
            for (int row = 0; row < rows; row++)
                CHECK_EQUAL(turned[from * rows + row], from * 100000 + row * size + rank);
        MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, wide, 1, wide_column, MPI_COMM_WORLD);
        for (int from = 0; from < size; from++)
            for (int row = 0; row < rows; row++)
                CHECK_EQUAL(wide[row * size + from], from * 100000 + row * size + rank);
        free(turned);
        free(wide);
        MPI_Type_free(&vector);
        MPI_Type_free(&wide_column);
    }
    MPI_Type_free(&column);
}

/* A type whose data starts after its origin and whose elements lie one before the other. */
static void backwards(void)
{
    MPI_Datatype displaced, type;
    MPI_Aint place = 8;
    int one = 1;
    MPI_Datatype old = MPI_INT;
    MPI_Type_create_struct(1, &one, &place, &old, &displaced);
    MPI_Type_create_resized(displaced, 0, -12, &type);
    MPI_Type_commit(&type);
    enum { count = 7 };
    unsigned char memory[12 * count + 16];
    unsigned char *origin = memory + 12 * count - 8;
    for (int root = 0; root < size; root++) {
        memset(memory, 0xee, sizeof memory);
        for (int index = 0; index < count; index++) {
            int value = rank == root ? 100 * root + index : -1;
            memcpy(origin + 8 - 12 * index, &value, sizeof value);
        }
        MPI_Bcast(origin, count, type, root, MPI_COMM_WORLD);
        int holes = 0;
        for (int index = 0; index < count; index++) {
            int value;
            memcpy(&value, origin + 8 - 12 * index, sizeof value);
            CHECK_EQUAL(value, 100 * root + index);
        }
        for (size_t index = 0; index < sizeof memory; index++)
            holes += memory[index] == 0xee;
        CHECK(holes >= (int)sizeof memory - 4 * count, "bytes between the elements were written");
    }
    MPI_Type_free(&displaced);
    MPI_Type_free(&type);
}

/* A structure with a hole, and an operator on it whose order matters: 2 x 2 matrices modulo a prime. */
typedef struct {
    char name;
    double gap;
    int m[4];
} element;

enum { prime = 9973 };

static void multiply(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    element *left = in, *right = inout;
    for (int index = 0; index < *count; index++) {
        const int *a = left[index].m, *b = right[index].m;
        int product[4] = {(a[0] * b[0] + a[1] * b[2]) % prime, (a[0] * b[1] + a[1] * b[3]) % prime,
                          (a[2] * b[0] + a[3] * b[2]) % prime, (a[2] * b[1] + a[3] * b[3]) % prime};
        memcpy(right[index].m, product, sizeof product);
        right[index].name = (char)(left[index].name ^ right[index].name);
    }
}

static element operand(int from, int index)
{
    return (element){.name = (char)(from + index), .gap = -1,
                     .m = {from + 1, index + 2, (from * index) % 7, 3 + from % 4}};
}

static element product_of(int first, int end, int index)
{
    element product = operand(end - 1, index);
    for (int from = end - 2; from >= first; from--) {
        element left = operand(from, index);
        multiply(&left, &product, &(int){1}, NULL);
    }
    return product;
}

static void same(const element *got, element expected, const char *call)
{
    CHECK(memcmp(got->m, expected.m, sizeof expected.m) == 0 && got->name == expected.name, "%s: wrong product", call);
    CHECK(got->gap == -9, "%s: a byte in the hole was written", call);
}

static void ordered_operator(int count)
{
    MPI_Datatype packed, type;
    MPI_Op op;
    int lengths[2] = {1, 4};
    MPI_Aint places[2] = {offsetof(element, name), offsetof(element, m)};
    MPI_Datatype types[2] = {MPI_CHAR, MPI_INT};
    MPI_Type_create_struct(2, lengths, places, types, &packed);
    MPI_Type_create_resized(packed, 0, sizeof(element), &type);
    MPI_Type_commit(&type);
    MPI_Op_create(multiply, 0, &op);
    size_t room = sizeof(element) * (size_t)(count * size + 1);
    element *in = malloc(room), *out = malloc(room);
    for (int index = 0; index < count * size; index++) {
        in[index] = operand(rank, index);
        out[index].gap = -9;
    }
    MPI_Allreduce(in, out, count, type, op, MPI_COMM_WORLD);
    for (int index = 0; index < count; index++)
        same(&out[index], product_of(0, size, index), "MPI_Allreduce");
    for (int root = 0; root < size; root++) {
        MPI_Reduce(in, out, count, type, op, root, MPI_COMM_WORLD);
        for (int index = 0; rank == root && index < count; index++)
            same(&out[index], product_of(0, size, index), "MPI_Reduce");
    }
    MPI_Scan(in, out, count, type, op, MPI_COMM_WORLD);
    for (int index = 0; index < count; index++)
        same(&out[index], product_of(0, rank + 1, index), "MPI_Scan");
    MPI_Exscan(in, out, count, type, op, MPI_COMM_WORLD);
    for (int index = 0; rank > 0 && index < count; index++)
        same(&out[index], product_of(0, rank, index), "MPI_Exscan");
    MPI_Reduce_scatter_block(in, out, count, type, op, MPI_COMM_WORLD);
    for (int index = 0; index < count; index++)
        same(&out[index], product_of(0, size, rank * count + index), "MPI_Reduce_scatter_block");
    MPI_Request request;
    MPI_Iallreduce(in, out, count, type, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int index = 0; index < count; index++)
        same(&out[index], product_of(0, size, index), "MPI_Iallreduce");
    free(in);
    free(out);
    MPI_Op_free(&op);
    MPI_Type_free(&packed);
    MPI_Type_free(&type);
}

/* A type and an operator may be freed while an operation that uses them is under way. */
static void freed_early(void)
{
    MPI_Datatype column = column_type();
    MPI_Op op;
    MPI_Comm copy;
    int grid[rows][columns], got[rows][columns];
    MPI_Request requests[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Op_create(multiply, 0, &op);
    matrix(grid, rank == 0 ? 0 : -1);
    MPI_Ibcast(grid, columns, column, 0, copy, &requests[0]);
    MPI_Igather(&rank, 1, MPI_INT, got, 1, MPI_INT, 0, copy, &requests[1]);
    MPI_Type_free(&column);
    MPI_Op_free(&op);
    if (size <= rows * columns) {
        MPI_Comm_free(&copy);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int row = 0; row < rows; row++)
            for (int place = 0; place < columns; place++)
                CHECK_EQUAL(grid[row][place], cell(0, row, place));
        for (int from = 0; rank == 0 && from < size; from++)
            CHECK_EQUAL(((int *)got)[from], from);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    rank = check_rank;
    size = check_size;
    columns_and_rows();
    backwards();
    ordered_operator(1);
    ordered_operator(3);
    ordered_operator(500);
    if (size <= rows * columns)
        freed_early();
    return check_end("collectives_layouts");
}
