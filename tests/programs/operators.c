/* Predefined operators on predefined types, user operators (commutative and not), and types that an operator refuses. */
#include "check.h"

#include <complex.h>
#include <stdbool.h>

static int refused(int code)
{
    int class_ = 0;
    MPI_Error_class(code, &class_);
    return class_ == MPI_ERR_OP || class_ == MPI_ERR_TYPE;
}

/* Small values, so that every type holds every sum and product exactly. */
#define ARITHMETIC(type, handle)                                                                    \
    do {                                                                                            \
        type in[5], out[5];                                                                         \
        for (int index = 0; index < 5; index++)                                                     \
            in[index] = (type)(check_rank % 3 + index % 2 + 1);                                     \
        long sum[5] = {0}, product[5] = {1, 1, 1, 1, 1}, lowest[5], highest[5];                     \
        for (int index = 0; index < 5; index++) {                                                   \
            lowest[index] = 100;                                                                    \
            highest[index] = 0;                                                                     \
            for (int from = 0; from < check_size; from++) {                                         \
                long value = from % 3 + index % 2 + 1;                                              \
                sum[index] += value;                                                                \
                product[index] *= value;                                                            \
                lowest[index] = value < lowest[index] ? value : lowest[index];                      \
                highest[index] = value > highest[index] ? value : highest[index];                   \
            }                                                                                       \
        }                                                                                           \
        SUCCEEDS(MPI_Allreduce(in, out, 5, handle, MPI_SUM, MPI_COMM_WORLD));                       \
        for (int index = 0; index < 5; index++)                                                     \
            CHECK(out[index] == (type)sum[index], "MPI_SUM of " #handle);                           \
        SUCCEEDS(MPI_Allreduce(in, out, 5, handle, MPI_PROD, MPI_COMM_WORLD));                      \
        for (int index = 0; index < 5; index++)                                                     \
            CHECK(out[index] == (type)product[index], "MPI_PROD of " #handle);                      \
        SUCCEEDS(MPI_Allreduce(in, out, 5, handle, MPI_MIN, MPI_COMM_WORLD));                       \
        for (int index = 0; index < 5; index++)                                                     \
            CHECK(out[index] == (type)lowest[index], "MPI_MIN of " #handle);                        \
        SUCCEEDS(MPI_Allreduce(in, out, 5, handle, MPI_MAX, MPI_COMM_WORLD));                       \
        for (int index = 0; index < 5; index++)                                                     \
            CHECK(out[index] == (type)highest[index], "MPI_MAX of " #handle);                       \
    } while (0)

#define INTEGER(type, handle)                                                                       \
    do {                                                                                            \
        ARITHMETIC(type, handle);                                                                   \
        type in = (type)(1 << (check_rank % 6)), out, all_or = 0, all_xor = 0, all_and = (type)~(type)0; \
        for (int from = 0; from < check_size; from++) {                                             \
            type value = (type)(1 << (from % 6));                                                   \
            all_or = (type)(all_or | value);                                                        \
            all_xor = (type)(all_xor ^ value);                                                      \
            all_and = (type)(all_and & value);                                                      \
        }                                                                                           \
        SUCCEEDS(MPI_Allreduce(&in, &out, 1, handle, MPI_BOR, MPI_COMM_WORLD));                     \
        CHECK(out == all_or, "MPI_BOR of " #handle);                                                \
        SUCCEEDS(MPI_Allreduce(&in, &out, 1, handle, MPI_BXOR, MPI_COMM_WORLD));                    \
        CHECK(out == all_xor, "MPI_BXOR of " #handle);                                              \
        SUCCEEDS(MPI_Allreduce(&in, &out, 1, handle, MPI_BAND, MPI_COMM_WORLD));                    \
        CHECK(out == all_and, "MPI_BAND of " #handle);                                              \
        in = (type)(check_rank == 0 ? 0 : 3);                                                       \
        SUCCEEDS(MPI_Allreduce(&in, &out, 1, handle, MPI_LAND, MPI_COMM_WORLD));                    \
        CHECK(out == 0, "MPI_LAND of " #handle);                                                    \
        SUCCEEDS(MPI_Allreduce(&in, &out, 1, handle, MPI_LOR, MPI_COMM_WORLD));                     \
        CHECK(out == (check_size > 1), "MPI_LOR of " #handle);                                      \
        SUCCEEDS(MPI_Allreduce(&in, &out, 1, handle, MPI_LXOR, MPI_COMM_WORLD));                    \
        CHECK(out == ((check_size - 1) & 1), "MPI_LXOR of " #handle);                               \
    } while (0)

#define LOCATION(type, handle)                                                                      \
    do {                                                                                            \
        struct { type value; int place; } in[3], out[3];                                            \
        for (int index = 0; index < 3; index++) {                                                   \
            in[index].value = (type)((check_rank + index) % check_size);                            \
            in[index].place = check_rank;                                                           \
        }                                                                                           \
        SUCCEEDS(MPI_Allreduce(in, out, 3, handle, MPI_MINLOC, MPI_COMM_WORLD));                    \
        for (int index = 0; index < 3; index++) {                                                   \
            CHECK(out[index].value == 0, "MPI_MINLOC of " #handle);                                 \
            CHECK_EQUAL(out[index].place, (check_size - index % check_size) % check_size);          \
        }                                                                                           \
        for (int index = 0; index < 3; index++)                                                     \
            in[index].value = 7;                                                                    \
        SUCCEEDS(MPI_Allreduce(in, out, 3, handle, MPI_MAXLOC, MPI_COMM_WORLD));                    \
        CHECK_EQUAL(out[0].place, 0);                                                               \
    } while (0)

/* Composition of affine maps x -> a x + b modulo a prime: associative, not commutative. */
typedef struct { int a, b; } affine;
enum { prime = 10007 };

static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    affine *first = in, *second = inout;
    for (int index = 0; index < *count; index++) {
        affine left = first[index], right = second[index];
        second[index].a = left.a * right.a % prime;
        second[index].b = (left.a * right.b + left.b) % prime;
    }
}

static void add_large(void *in, void *inout, MPI_Count *count, MPI_Datatype *type)
{
    (void)type;
    for (MPI_Count index = 0; index < *count; index++)
        ((int *)inout)[index] += ((int *)in)[index];
}

static void user_operators(void)
{
    MPI_Datatype pair;
    MPI_Op composition, addition;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &composition);
    int commutes;
    MPI_Op_commutative(composition, &commutes);
    CHECK_EQUAL(commutes, 0);
    static const int counts[] = {1, 5, 3000};
    for (int which = 0; which < 3; which++) {
        int count = counts[which];
        affine *in = malloc((size_t)count * sizeof *in), *out = malloc((size_t)count * sizeof *out);
        for (int index = 0; index < count; index++) {
            in[index].a = check_rank + 2 + index % 5;
            in[index].b = 3 * check_rank + index;
        }
        for (int form = 0; form < 3; form++) {
            int until = check_size;
            if (form == 0)
                MPI_Allreduce(in, out, count, pair, composition, MPI_COMM_WORLD);
            else if (form == 1)
                MPI_Reduce(in, out, count, pair, composition, check_size - 1, MPI_COMM_WORLD);
            else {
                MPI_Scan(in, out, count, pair, composition, MPI_COMM_WORLD);
                until = check_rank + 1;
            }
            if (form == 1 && check_rank != check_size - 1)
                continue;
            for (int index = 0; index < count; index++) {
                affine expected = {2 + index % 5, index};
                for (int from = 1; from < until; from++) {
                    affine right = {from + 2 + index % 5, 3 * from + index};
                    expected.b = (expected.a * right.b + expected.b) % prime;
                    expected.a = expected.a * right.a % prime;
                }
                CHECK(out[index].a == expected.a && out[index].b % prime == expected.b % prime,
                      "an operator that does not commute, form %d count %d index %d", form, count, index);
            }
        }
        free(in);
        free(out);
    }
    MPI_Op_free(&composition);
    CHECK(composition == MPI_OP_NULL, "a freed operator is null");
    MPI_Op_create_c(add_large, 1, &addition);
    int in[4] = {check_rank, 1, 2, 3}, out[4];
    MPI_Allreduce(in, out, 4, MPI_INT, addition, MPI_COMM_WORLD);
    CHECK_EQUAL(out[0], check_size * (check_size - 1) / 2);
    CHECK_EQUAL(out[3], 3 * check_size);
    MPI_Op_free(&addition);
    MPI_Type_free(&pair);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    INTEGER(signed char, MPI_SIGNED_CHAR);
    INTEGER(unsigned char, MPI_UNSIGNED_CHAR);
    INTEGER(short, MPI_SHORT);
    INTEGER(unsigned short, MPI_UNSIGNED_SHORT);
    INTEGER(int, MPI_INT);
    INTEGER(unsigned, MPI_UNSIGNED);
    INTEGER(long, MPI_LONG);
    INTEGER(unsigned long, MPI_UNSIGNED_LONG);
    INTEGER(long long, MPI_LONG_LONG);
    INTEGER(unsigned long long, MPI_UNSIGNED_LONG_LONG);
    INTEGER(int8_t, MPI_INT8_T);
    INTEGER(int16_t, MPI_INT16_T);
    INTEGER(int32_t, MPI_INT32_T);
    INTEGER(int64_t, MPI_INT64_T);
    INTEGER(uint8_t, MPI_UINT8_T);
    INTEGER(uint16_t, MPI_UINT16_T);
    INTEGER(uint32_t, MPI_UINT32_T);
    INTEGER(uint64_t, MPI_UINT64_T);
    INTEGER(MPI_Aint, MPI_AINT);
    INTEGER(MPI_Offset, MPI_OFFSET);
    INTEGER(MPI_Count, MPI_COUNT);
    ARITHMETIC(float, MPI_FLOAT);
    ARITHMETIC(double, MPI_DOUBLE);
    ARITHMETIC(long double, MPI_LONG_DOUBLE);
    LOCATION(float, MPI_FLOAT_INT);
    LOCATION(double, MPI_DOUBLE_INT);
    LOCATION(long, MPI_LONG_INT);
    LOCATION(int, MPI_2INT);
    LOCATION(short, MPI_SHORT_INT);
    LOCATION(long double, MPI_LONG_DOUBLE_INT);

    double _Complex z = 1 + I * check_rank, sum;
    SUCCEEDS(MPI_Allreduce(&z, &sum, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD));
    CHECK(creal(sum) == check_size && cimag(sum) == check_size * (check_size - 1) / 2, "sum of complex numbers");
    z = I;
    SUCCEEDS(MPI_Allreduce(&z, &sum, 1, MPI_C_DOUBLE_COMPLEX, MPI_PROD, MPI_COMM_WORLD));
    double _Complex power = 1;
    for (int from = 0; from < check_size; from++)
        power *= I;
    CHECK(sum == power, "product of complex numbers");
    bool truth = check_rank == 0, out;
    SUCCEEDS(MPI_Allreduce(&truth, &out, 1, MPI_C_BOOL, MPI_LOR, MPI_COMM_WORLD));
    CHECK(out, "MPI_LOR of MPI_C_BOOL");

    CHECK(refused(MPI_Allreduce(&z, &sum, 1, MPI_C_DOUBLE_COMPLEX, MPI_MAX, MPI_COMM_WORLD)), "no maximum of complex numbers");
    double real = 1, other;
    CHECK(refused(MPI_Allreduce(&real, &other, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD)), "no bits of floating point");
    user_operators();
    return check_end("operators");
}
