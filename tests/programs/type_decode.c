/* What can be asked about datatypes and operations: sizes and bounds, envelopes and contents in both forms, names, attributes, elements of partial
 * receives, external32, parameterised types; and what is refused, by its error class. */
#include "check.h"

#define REFUSES(call, class) CHECK_EQUAL(class_of(call), class)

static void bounds(void)
{
    MPI_Datatype type, resized, both;
    MPI_Aint lb, extent;
    int size;
    /* A structure is padded to the alignment of its widest member, and negative places count. */
    int lengths[] = {1, 1};
    MPI_Aint places[] = {-8, 0};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_CHAR};
    SUCCEEDS(MPI_Type_create_struct(2, lengths, places, types, &type));
    SUCCEEDS(MPI_Type_get_extent(type, &lb, &extent));
    CHECK_EQUAL(lb, -8);
    CHECK_EQUAL(extent, 16);
    SUCCEEDS(MPI_Type_get_true_extent(type, &lb, &extent));
    CHECK_EQUAL(lb, -8);
    CHECK_EQUAL(extent, 9);
    SUCCEEDS(MPI_Type_size(type, &size));
    CHECK_EQUAL(size, 9);
    /* Explicit bounds are inherited, and a plain member beside them does not widen them. */
    SUCCEEDS(MPI_Type_create_resized(type, 2, 3, &resized));
    MPI_Datatype members[] = {resized, MPI_INT};
    MPI_Aint apart[] = {0, 100};
    SUCCEEDS(MPI_Type_create_struct(2, lengths, apart, members, &both));
    SUCCEEDS(MPI_Type_get_extent(both, &lb, &extent));
    CHECK_EQUAL(lb, 2);
    CHECK_EQUAL(extent, 3);
    SUCCEEDS(MPI_Type_get_true_extent(both, &lb, &extent));
    CHECK_EQUAL(lb, -8);
    CHECK_EQUAL(extent, 112);
    MPI_Type_free(&both);
    MPI_Type_free(&resized);
    MPI_Type_free(&type);
    CHECK(type == MPI_DATATYPE_NULL, "a freed handle is null");

    /* Sizes beyond an int. */
    MPI_Datatype huge, more;
    MPI_Count count, count_lb, count_extent;
    SUCCEEDS(MPI_Type_contiguous(1 << 30, MPI_DOUBLE, &huge));
    SUCCEEDS(MPI_Type_size(huge, &size));
    CHECK_EQUAL(size, MPI_UNDEFINED);
    SUCCEEDS(MPI_Type_size_c(huge, &count));
    CHECK_EQUAL(count, (MPI_Count)1 << 33);
    SUCCEEDS(MPI_Type_size_x(huge, &count));
    CHECK_EQUAL(count, (MPI_Count)1 << 33);
    SUCCEEDS(MPI_Type_vector_c((MPI_Count)1 << 20, 1, 4, huge, &more));
    SUCCEEDS(MPI_Type_get_extent_c(more, &count_lb, &count_extent));
    CHECK_EQUAL(count_extent, (((MPI_Count)1 << 22) - 3) << 33);
    REFUSES(MPI_Type_contiguous_c((MPI_Count)1 << 40, more, &type), MPI_ERR_ARG);
    MPI_Type_free(&more);
    MPI_Type_free(&huge);
}

static void check_envelope(MPI_Datatype type, int combiner, int integers, int addresses, int datatypes)
{
    int ni, na, nd, found;
    SUCCEEDS(MPI_Type_get_envelope(type, &ni, &na, &nd, &found));
    CHECK_EQUAL(found, combiner);
    CHECK_EQUAL(ni, integers);
    CHECK_EQUAL(na, addresses);
    CHECK_EQUAL(nd, datatypes);
    MPI_Count large_ni, large_na, large_nc, large_nd;
    SUCCEEDS(MPI_Type_get_envelope_c(type, &large_ni, &large_na, &large_nc, &large_nd, &found));
    CHECK(large_ni == ni && large_na == na && large_nc == 0 && large_nd == nd, "the large form tells the same");
}

static void contents(void)
{
    MPI_Datatype column, type, inner[2];
    int integers[16];
    MPI_Aint addresses[8];
    MPI_Count counts[16];
    SUCCEEDS(MPI_Type_vector(3, 2, -5, MPI_INT, &column));
    check_envelope(column, MPI_COMBINER_VECTOR, 3, 0, 1);
    SUCCEEDS(MPI_Type_get_contents(column, 3, 0, 1, integers, addresses, inner));
    CHECK(integers[0] == 3 && integers[1] == 2 && integers[2] == -5, "count, blocklength, stride");
    CHECK(inner[0] == MPI_INT, "a predefined type comes back as itself");

    int lengths[] = {2, 0};
    MPI_Aint places[] = {16, -16};
    MPI_Datatype types[] = {column, MPI_CHAR};
    SUCCEEDS(MPI_Type_create_struct(2, lengths, places, types, &type));
    check_envelope(type, MPI_COMBINER_STRUCT, 3, 2, 2);
    REFUSES(MPI_Type_get_contents(type, 2, 2, 2, integers, addresses, inner), MPI_ERR_ARG);
    SUCCEEDS(MPI_Type_get_contents(type, 16, 8, 2, integers, addresses, inner));
    CHECK(integers[0] == 2 && integers[1] == 2 && integers[2] == 0, "count and block lengths");
    CHECK(addresses[0] == 16 && addresses[1] == -16, "displacements");
    int ni, na, nd, combiner;
    MPI_Type_free(&column);
    SUCCEEDS(MPI_Type_get_envelope(inner[0], &ni, &na, &nd, &combiner));
    CHECK_EQUAL(combiner, MPI_COMBINER_VECTOR);
    MPI_Type_free(&inner[0]);
    /* Asked again, there is a handle again. */
    SUCCEEDS(MPI_Type_get_contents(type, 16, 8, 2, integers, addresses, inner));
    SUCCEEDS(MPI_Type_get_envelope(inner[0], &ni, &na, &nd, &combiner));
    MPI_Type_free(&inner[0]);
    MPI_Type_free(&type);
    REFUSES(MPI_Type_get_contents(MPI_INT, 16, 8, 2, integers, addresses, inner), MPI_ERR_TYPE);

    /* Made by the large form: the counts are told by the large form only. */
    MPI_Count large_lengths[] = {1, 4}, large_places[] = {0, 1000};
    SUCCEEDS(MPI_Type_create_hindexed_c(2, large_lengths, large_places, MPI_SHORT, &type));
    REFUSES(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner), MPI_ERR_TYPE);
    MPI_Count large_ni, large_na, large_nc, large_nd;
    SUCCEEDS(MPI_Type_get_envelope_c(type, &large_ni, &large_na, &large_nc, &large_nd, &combiner));
    CHECK(large_ni == 0 && large_na == 0 && large_nc == 5 && large_nd == 1, "five large counts");
    SUCCEEDS(MPI_Type_get_contents_c(type, 0, 0, 5, 1, integers, addresses, counts, inner));
    CHECK(counts[0] == 2 && counts[1] == 1 && counts[2] == 4 && counts[3] == 0 && counts[4] == 1000, "in order");
    MPI_Type_free(&type);

    int sizes[] = {6, 7}, parts[] = {2, 3}, starts[] = {1, 4};
    SUCCEEDS(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_INT, &type));
    check_envelope(type, MPI_COMBINER_SUBARRAY, 8, 0, 1);
    SUCCEEDS(MPI_Type_get_contents(type, 8, 0, 1, integers, addresses, inner));
    int expected[] = {2, 6, 7, 2, 3, 1, 4, MPI_ORDER_FORTRAN};
    CHECK(memcmp(integers, expected, sizeof expected) == 0, "contents of a subarray");
    MPI_Type_free(&type);
    starts[1] = 5;
    REFUSES(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_INT, &type), MPI_ERR_ARG);

    int distributions[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[] = {2, 3};
    SUCCEEDS(MPI_Type_create_darray(6, 4, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &type));
    check_envelope(type, MPI_COMBINER_DARRAY, 12, 0, 1);
    int size;
    SUCCEEDS(MPI_Type_size(type, &size));
    CHECK_EQUAL(size, 3 * 2 * 4);
    MPI_Type_free(&type);
    arguments[0] = 2;
    REFUSES(MPI_Type_create_darray(6, 4, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG);
}

static int copies, deletes;

static int copy_attribute(MPI_Datatype type, int key, void *extra, void *in, void *out, int *flag)
{
    (void)type;
    (void)key;
    CHECK(extra == &copies, "extra state");
    copies++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)key;
    (void)extra;
    int size;
    MPI_Type_size(type, &size);
    deletes++;
    return value == (void *)&deletes ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void names_and_attributes(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length, key, flag;
    void *value;
    SUCCEEDS(MPI_Type_get_name(MPI_LONG_DOUBLE_INT, name, &length));
    CHECK(strcmp(name, "MPI_LONG_DOUBLE_INT") == 0 && length == (int)strlen(name), "%s", name);
    SUCCEEDS(MPI_Type_get_name(MPI_LONG_LONG, name, &length));
    CHECK(strcmp(name, "MPI_LONG_LONG_INT") == 0, "a synonym has the name of what it stands for: %s", name);
    SUCCEEDS(MPI_Type_get_name(MPI_C_FLOAT_COMPLEX, name, &length));
    CHECK(strcmp(name, "MPI_C_COMPLEX") == 0, "%s", name);
    SUCCEEDS(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &length));
    CHECK(strcmp(name, "MPI_DATATYPE_NULL") == 0, "%s", name);
    MPI_Datatype type, copy;
    SUCCEEDS(MPI_Type_contiguous(5, MPI_FLOAT, &type));
    SUCCEEDS(MPI_Type_get_name(type, name, &length));
    CHECK(length == 0 && name[0] == 0, "a new type has no name");
    SUCCEEDS(MPI_Type_set_name(type, "five"));
    SUCCEEDS(MPI_Type_get_name(type, name, &length));
    CHECK(strcmp(name, "five") == 0, "%s", name);

    SUCCEEDS(MPI_Type_create_keyval(copy_attribute, delete_attribute, &key, &copies));
    SUCCEEDS(MPI_Type_set_attr(type, key, name));
    SUCCEEDS(MPI_Type_dup(type, &copy));
    CHECK_EQUAL(copies, 1);
    SUCCEEDS(MPI_Type_get_attr(copy, key, &value, &flag));
    CHECK(flag && value == name + 1, "the copy callback decides");
    SUCCEEDS(MPI_Type_free(&copy));
    CHECK_EQUAL(deletes, 1);
    /* A delete callback that refuses keeps the type. */
    SUCCEEDS(MPI_Type_set_attr(type, key, &deletes));
    CHECK_EQUAL(deletes, 2);
    REFUSES(MPI_Type_free(&type), MPI_ERR_OTHER);
    CHECK(type != MPI_DATATYPE_NULL, "still there");
    REFUSES(MPI_Type_delete_attr(type, key), MPI_ERR_OTHER);
    CHECK_EQUAL(deletes, 4);
    SUCCEEDS(MPI_Type_free_keyval(&key));
    /* It cannot be freed any more, which is what the program has asked for. */
    REFUSES(MPI_Type_free(&type), MPI_ERR_OTHER);
}

static void elements(void)
{
    MPI_Datatype type;
    int lengths[] = {1, 1};
    MPI_Aint places[] = {0, 8};
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
    SUCCEEDS(MPI_Type_create_struct(2, lengths, places, types, &type));
    SUCCEEDS(MPI_Type_commit(&type));
    unsigned char data[64] = {0}, place[256];
    int expected_elements[] = {0, 1, 2, 3, 4}, bytes[] = {0, 4, 12, 16, 24};
    for (int index = 0; index < 5; index++) {
        MPI_Status status;
        int count, found;
        MPI_Count large;
        SUCCEEDS(MPI_Sendrecv(data, bytes[index], MPI_BYTE, 0, 1, place, 8, type, 0, 1, MPI_COMM_SELF, &status));
        SUCCEEDS(MPI_Get_elements(&status, type, &found));
        CHECK_EQUAL(found, expected_elements[index]);
        SUCCEEDS(MPI_Get_elements_x(&status, type, &large));
        CHECK_EQUAL(large, expected_elements[index]);
        SUCCEEDS(MPI_Get_count(&status, type, &count));
        CHECK_EQUAL(count, bytes[index] % 12 ? MPI_UNDEFINED : bytes[index] / 12);
        SUCCEEDS(MPI_Status_set_elements(&status, type, 3));
        SUCCEEDS(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK_EQUAL(count, 16);
    }
    SUCCEEDS(MPI_Type_free(&type));
}

static void external32(void)
{
    int numbers[] = {1, -2};
    long wide[] = {7, -1, (long)1 << 40};
    long double fraction = 1.5L, back = 0;
    unsigned char buffer[64];
    MPI_Aint position = 0, size;
    SUCCEEDS(MPI_Pack_external("external32", numbers, 2, MPI_INT, buffer, sizeof buffer, &position));
    CHECK_EQUAL(position, 8);
    unsigned char ints[] = {0, 0, 0, 1, 255, 255, 255, 254};
    CHECK(memcmp(buffer, ints, 8) == 0, "big endian");
    SUCCEEDS(MPI_Pack_external_size("external32", 2, MPI_LONG, &size));
    CHECK_EQUAL(size, 8);
    SUCCEEDS(MPI_Pack_external("external32", wide, 2, MPI_LONG, buffer, sizeof buffer, &position));
    CHECK_EQUAL(position, 16);
    REFUSES(MPI_Pack_external("external32", wide, 3, MPI_LONG, buffer, sizeof buffer, &position), MPI_ERR_CONVERSION);
    CHECK_EQUAL(position, 16);
    SUCCEEDS(MPI_Pack_external("external32", &fraction, 1, MPI_LONG_DOUBLE, buffer, sizeof buffer, &position));
    unsigned char quad[16] = {0x3f, 0xff, 0x80};
    CHECK(memcmp(buffer + 16, quad, 16) == 0, "a long double is a binary128");
    position = 16;
    SUCCEEDS(MPI_Unpack_external("external32", buffer, sizeof buffer, &position, &back, 1, MPI_LONG_DOUBLE));
    CHECK(back == fraction, "%Lf", back);
    CHECK_EQUAL(position, 32);
    position = 60;
    REFUSES(MPI_Pack_external("external32", numbers, 2, MPI_INT, buffer, sizeof buffer, &position), MPI_ERR_TRUNCATE);
    REFUSES(MPI_Pack_external("internal", numbers, 1, MPI_INT, buffer, sizeof buffer, &position), MPI_ERR_ARG);
}

static void parameterised(void)
{
    MPI_Datatype one, two;
    int size, ni, na, nd, combiner, integers[2];
    MPI_Aint address;
    MPI_Datatype none;
    SUCCEEDS(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &one));
    SUCCEEDS(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &two));
    CHECK(one == two, "the same question, the same handle");
    SUCCEEDS(MPI_Type_get_envelope(one, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_F90_REAL && ni == 2 && na == 0 && nd == 0, "envelope");
    SUCCEEDS(MPI_Type_get_contents(one, 2, 0, 0, integers, &address, &none));
    CHECK(integers[0] == 15 && integers[1] == MPI_UNDEFINED, "p and r");
    REFUSES(MPI_Type_free(&one), MPI_ERR_TYPE);
    REFUSES(MPI_Type_create_f90_real(99, 1, &two), MPI_ERR_ARG);
    double left = 1.5, right = 2.25;
    SUCCEEDS(MPI_Reduce_local(&left, &right, 1, one, MPI_SUM));
    CHECK(right == 3.75, "a reduction on it");
    SUCCEEDS(MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, &one));
    SUCCEEDS(MPI_Type_size(one, &size));
    CHECK(one == MPI_COMPLEX16 && size == 16, "match_size");
    REFUSES(MPI_Type_match_size(MPI_TYPECLASS_REAL, 5, &one), MPI_ERR_ARG);
    SUCCEEDS(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &one));
    CHECK(one == MPI_DOUBLE_INT, "a named pair");
    SUCCEEDS(MPI_Type_get_value_index(MPI_DOUBLE, MPI_FLOAT, &one));
    CHECK(one == MPI_DATATYPE_NULL, "no such pair");
}

static int calls;

static void concatenate(void *in, void *inout, MPI_Count *length, MPI_Datatype *type)
{
    int size;
    MPI_Type_size(*type, &size);
    CHECK_EQUAL(size, 2);
    for (MPI_Count index = 0; index < *length; index++)
        ((char *)inout)[3 * index + 1] = ((char *)in)[3 * index];
    calls++;
}

static void operations(void)
{
    MPI_Op op;
    MPI_Datatype type, resized;
    int commutes;
    SUCCEEDS(MPI_Type_contiguous(2, MPI_CHAR, &type));
    SUCCEEDS(MPI_Type_create_resized(type, 0, 3, &resized));
    SUCCEEDS(MPI_Type_commit(&resized));
    SUCCEEDS(MPI_Op_create_c(concatenate, 0, &op));
    SUCCEEDS(MPI_Op_commutative(op, &commutes));
    CHECK_EQUAL(commutes, 0);
    char in[] = "ab-cd-", inout[] = "AB-CD-";
    SUCCEEDS(MPI_Reduce_local_c(in, inout, 2, resized, op));
    CHECK(strcmp(inout, "Aa-Cc-") == 0, "%s", inout);
    CHECK_EQUAL(calls, 1);
    REFUSES(MPI_Reduce_local(in, inout, 2, resized, MPI_SUM), MPI_ERR_OP);
    REFUSES(MPI_Reduce_local(in, inout, 2, MPI_DOUBLE, MPI_BXOR), MPI_ERR_OP);
    REFUSES(MPI_Reduce_local(in, inout, 2, type, op), MPI_ERR_TYPE);
    REFUSES(MPI_Reduce_local(NULL, inout, 2, MPI_CHAR, op), MPI_ERR_BUFFER);
    REFUSES(MPI_Reduce_local(in, MPI_IN_PLACE, 2, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
    int position = 0;
    REFUSES(MPI_Pack(NULL, 2, MPI_INT, inout, 8, &position, MPI_COMM_SELF), MPI_ERR_BUFFER);
    REFUSES(MPI_Pack(in, 1, MPI_INT, NULL, 8, &position, MPI_COMM_SELF), MPI_ERR_BUFFER);
    REFUSES(MPI_Unpack(NULL, 8, &position, inout, 1, MPI_INT, MPI_COMM_SELF), MPI_ERR_BUFFER);
    SUCCEEDS(MPI_Pack(NULL, 0, MPI_INT, NULL, 0, &position, MPI_COMM_SELF));
    SUCCEEDS(MPI_Op_commutative(MPI_MAXLOC, &commutes));
    CHECK_EQUAL(commutes, 1);
    SUCCEEDS(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL, "a freed handle is null");
    op = MPI_SUM;
    REFUSES(MPI_Op_free(&op), MPI_ERR_OP);
    REFUSES(MPI_Op_free(&(MPI_Op){MPI_OP_NULL}), MPI_ERR_OP);
    MPI_Type_free(&resized);
    MPI_Type_free(&type);
    type = MPI_INT;
    REFUSES(MPI_Type_free(&type), MPI_ERR_TYPE);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    bounds();
    contents();
    names_and_attributes();
    elements();
    external32();
    parameterised();
    operations();
    return check_end("type_decode");
}
