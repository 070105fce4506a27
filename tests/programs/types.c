/* Derived datatypes on the wire: what is sent by one type map arrives by another with the same signature, in every direction and mode. */
#include "check.h"

enum { rows = 48, columns = 37 };

static void columns_to_rows(int left, int right)
{
    static double matrix[rows][columns], row[rows];
    MPI_Datatype column;
    MPI_Type_vector(rows, 1, columns, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            matrix[i][j] = check_rank * 1e6 + i * 1000 + j;
    for (int j = 0; j < columns; j++) {
        MPI_Sendrecv(&matrix[0][j], 1, column, right, j, row, rows, MPI_DOUBLE, left, j, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < rows; i++)
            CHECK_EQUAL(row[i], left * 1e6 + i * 1000 + j);
    }
    /* All columns at once: the column resized to the extent of one element, so that this transposes. */
    MPI_Datatype stepped;
    static double transposed[columns][rows];
    MPI_Type_create_resized(column, 0, sizeof(double), &stepped);
    MPI_Type_commit(&stepped);
    MPI_Sendrecv(matrix, columns, stepped, right, 99, transposed, rows * columns, MPI_DOUBLE, left, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++)
            CHECK_EQUAL(transposed[j][i], left * 1e6 + i * 1000 + j);
    /* And back: contiguous bytes scattered by the receiver. */
    memset(matrix, 0, sizeof matrix);
    MPI_Sendrecv(transposed, rows * columns, MPI_DOUBLE, left, 98, matrix, columns, stepped, right, 98, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            CHECK_EQUAL(matrix[i][j], check_rank * 1e6 + i * 1000 + j);
    MPI_Type_free(&stepped);
    MPI_Type_free(&column);
}

static void structures(int left, int right)
{
    struct particle { char kind; double place[3]; int id; short charge; } *in, *out;
    for (int count = 1; count <= 20000; count = count * 9 + 1) {
        in = calloc((size_t)count, sizeof *in);
        out = calloc((size_t)count, sizeof *out);
        MPI_Aint base, places[4];
        MPI_Get_address(&in[0], &base);
        MPI_Get_address(&in[0].kind, &places[0]);
        MPI_Get_address(&in[0].place, &places[1]);
        MPI_Get_address(&in[0].id, &places[2]);
        MPI_Get_address(&in[0].charge, &places[3]);
        for (int index = 0; index < 4; index++)
            places[index] = MPI_Aint_diff(places[index], base);
        int lengths[] = {1, 3, 1, 1};
        MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_SHORT}, plain, particle;
        MPI_Type_create_struct(4, lengths, places, types, &plain);
        MPI_Type_create_resized(plain, 0, sizeof *in, &particle);
        MPI_Type_commit(&particle);
        MPI_Type_free(&plain);
        for (int index = 0; index < count; index++) {
            in[index].kind = (char)(index + check_rank);
            in[index].place[0] = index;
            in[index].place[1] = check_rank;
            in[index].place[2] = -index;
            in[index].id = index * 3;
            in[index].charge = (short)(index % 1000);
        }
        memset(out, 0x77, (size_t)count * sizeof *out);
        MPI_Status status;
        int got, elements;
        MPI_Sendrecv(in, count, particle, right, 1, out, count, particle, left, 1, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, particle, &got);
        MPI_Get_elements(&status, particle, &elements);
        CHECK_EQUAL(got, count);
        CHECK_EQUAL(elements, 6 * count);
        for (int index = 0; index < count; index++) {
            CHECK_EQUAL(out[index].kind, (char)(index + left));
            CHECK(out[index].place[0] == index && out[index].place[1] == left && out[index].place[2] == -index, "place %d", index);
            CHECK_EQUAL(out[index].id, index * 3);
            CHECK_EQUAL(out[index].charge, index % 1000);
            /* The padding between the members is nobody's to write. */
            CHECK_EQUAL(((unsigned char *)&out[index])[1], 0x77);
        }
        /* Fewer whole elements than the receiver has room for. */
        MPI_Sendrecv(in, count, particle, right, 2, out, count, particle, left, 2, MPI_COMM_WORLD, &status);
        MPI_Type_free(&particle);
        free(in);
        free(out);
    }
}

static void blocks(int left, int right)
{
    int sizes[] = {40, 30, 20}, parts[] = {11, 13, 7}, starts[] = {5, 9, 2};
    MPI_Datatype box;
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &box);
    MPI_Type_commit(&box);
    int *cube = malloc(sizeof(int) * 40 * 30 * 20), *flat = malloc(sizeof(int) * 11 * 13 * 7), *back = calloc(40 * 30 * 20, sizeof(int));
    for (int index = 0; index < 40 * 30 * 20; index++)
        cube[index] = index + check_rank;
    MPI_Sendrecv(cube, 1, box, right, 3, flat, 11 * 13 * 7, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int at = 0;
    for (int i = 5; i < 16; i++)
        for (int j = 9; j < 22; j++)
            for (int k = 2; k < 9; k++)
                CHECK_EQUAL(flat[at++], (i * 30 + j) * 20 + k + left);
    MPI_Sendrecv(flat, 11 * 13 * 7, MPI_INT, left, 4, back, 1, box, right, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    long touched = 0;
    for (int index = 0; index < 40 * 30 * 20; index++)
        touched += back[index] != 0;
    CHECK(touched >= 11 * 13 * 7 - 1 && touched <= 11 * 13 * 7, "%ld elements written", touched);
    CHECK_EQUAL(back[(6 * 30 + 10) * 20 + 3], (6 * 30 + 10) * 20 + 3 + check_rank);

    /* The same by indexed blocks, through the collectives and through pack. */
    int displacements[50], size;
    for (int index = 0; index < 50; index++)
        displacements[index] = (49 - index) * 5;
    MPI_Datatype scattered;
    MPI_Type_create_indexed_block(50, 2, displacements, MPI_INT, &scattered);
    MPI_Type_commit(&scattered);
    MPI_Type_size(scattered, &size);
    CHECK_EQUAL(size, 400);
    int *all = malloc(sizeof(int) * 100 * (size_t)check_size);
    MPI_Allgather(cube, 1, scattered, all, 100, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < check_size; from++)
        for (int index = 0; index < 100; index++)
            CHECK_EQUAL(all[from * 100 + index], displacements[index / 2] + index % 2 + from);
    memset(back, 0, sizeof(int) * 300);
    int root = check_size - 1;
    if (check_rank == root)
        memcpy(back, cube, sizeof(int) * 300);
    MPI_Bcast(back, 1, scattered, root, MPI_COMM_WORLD);
    for (int index = 0; index < 50; index++)
        CHECK_EQUAL(back[displacements[index] + 1], displacements[index] + 1 + root);
    char packed[1000];
    int position = 0;
    MPI_Pack(cube, 1, scattered, packed, sizeof packed, &position, MPI_COMM_WORLD);
    CHECK_EQUAL(position, 400);
    MPI_Sendrecv_replace(packed, position, MPI_PACKED, right, 5, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    position = 0;
    MPI_Unpack(packed, 400, &position, back, 1, scattered, MPI_COMM_WORLD);
    CHECK_EQUAL(back[displacements[7]], displacements[7] + left);
    MPI_Type_free(&scattered);
    MPI_Type_free(&box);
    free(cube);
    free(flat);
    free(back);
    free(all);
}

static void absolute_addresses(int left, int right)
{
    int number = check_rank + 1, got_number = 0;
    double real = check_rank + 0.5, got_real = 0;
    MPI_Aint places[2], got_places[2];
    int lengths[] = {1, 1};
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE}, out, in;
    MPI_Get_address(&number, &places[0]);
    MPI_Get_address(&real, &places[1]);
    MPI_Get_address(&got_number, &got_places[0]);
    MPI_Get_address(&got_real, &got_places[1]);
    MPI_Type_create_struct(2, lengths, places, types, &out);
    MPI_Type_create_struct(2, lengths, got_places, types, &in);
    MPI_Type_commit(&out);
    MPI_Type_commit(&in);
    MPI_Sendrecv(MPI_BOTTOM, 1, out, right, 6, MPI_BOTTOM, 1, in, left, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQUAL(got_number, left + 1);
    CHECK(got_real == left + 0.5, "got %f", got_real);
    MPI_Type_free(&out);
    MPI_Type_free(&in);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    columns_to_rows(left, right);
    structures(left, right);
    blocks(left, right);
    absolute_addresses(left, right);
    return check_end("types");
}
