/* Reductions on the floating-point types that Rust has no arithmetic for: long double and binary128, and complex numbers
 * of them. Called from src/reduce.rs; the operator codes are those of `wide_code` there. */

#include <float.h>
#include <stddef.h>

enum { OP_MAX, OP_MIN, OP_SUM, OP_PRODUCT };

#if defined(__SIZEOF_FLOAT128__)
typedef __float128 quad;
#elif LDBL_MANT_DIG == 113
typedef long double quad;
#else
#error "this platform has no binary128 arithmetic in its C compiler"
#endif

/* Buffers may lie at any address. */
typedef long double any_long_double __attribute__((aligned(1), may_alias));
typedef quad any_quad __attribute__((aligned(1), may_alias));

/* Real types: input op inout goes to inout. The buffers may be the same. A not-a-number gives way to a number. */
#define DEFINE_REAL(NAME, TYPE)                                                                                     \
    void parnass_reduce_##NAME(int op, const TYPE *input, TYPE *inout, size_t count)                                \
    {                                                                                                               \
        switch (op) {                                                                                               \
        case OP_MAX:                                                                                                \
            for (size_t i = 0; i < count; i++)                                                                      \
                inout[i] = input[i] > inout[i] || inout[i] != inout[i] ? input[i] : inout[i];                       \
            break;                                                                                                  \
        case OP_MIN:                                                                                                \
            for (size_t i = 0; i < count; i++)                                                                      \
                inout[i] = input[i] < inout[i] || inout[i] != inout[i] ? input[i] : inout[i];                       \
            break;                                                                                                  \
        case OP_SUM:                                                                                                \
            for (size_t i = 0; i < count; i++)                                                                      \
                inout[i] = input[i] + inout[i];                                                                     \
            break;                                                                                                  \
        case OP_PRODUCT:                                                                                            \
            for (size_t i = 0; i < count; i++)                                                                      \
                inout[i] = input[i] * inout[i];                                                                     \
            break;                                                                                                  \
        }                                                                                                           \
    }

/* Complex types: pairs of real and imaginary part. */
#define DEFINE_COMPLEX(NAME, TYPE)                                                                                  \
    void parnass_reduce_complex_##NAME(int op, const TYPE *input, TYPE *inout, size_t count)                        \
    {                                                                                                               \
        if (op == OP_SUM) {                                                                                         \
            for (size_t i = 0; i < 2 * count; i++)                                                                  \
                inout[i] = input[i] + inout[i];                                                                     \
            return;                                                                                                 \
        }                                                                                                           \
        for (size_t i = 0; i < 2 * count; i += 2) {                                                                 \
            TYPE a = input[i], b = input[i + 1], c = inout[i], d = inout[i + 1];                                    \
            inout[i] = a * c - b * d;                                                                               \
            inout[i + 1] = a * d + b * c;                                                                           \
        }                                                                                                           \
    }

/* Less: -1, equal: 0, greater: 1, unordered: 2. */
#define DEFINE_COMPARE(NAME, TYPE)                                                                                  \
    int parnass_compare_##NAME(const TYPE *left, const TYPE *right)                                                 \
    {                                                                                                               \
        return *left < *right ? -1 : *left == *right ? 0 : *left > *right ? 1 : 2;                                  \
    }

DEFINE_REAL(long_double, any_long_double)
DEFINE_REAL(quad, any_quad)
DEFINE_COMPLEX(long_double, any_long_double)
DEFINE_COMPLEX(quad, any_quad)
DEFINE_COMPARE(long_double, any_long_double)
DEFINE_COMPARE(quad, any_quad)
