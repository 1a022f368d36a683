/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/apply.h"

#include <complex.h>
#include <stdint.h>
#include <string.h>

enum { ELEMENT_MAX = 32 };

/* Each type with its C type, and what may be done with it: numbers can be ordered, integers have
 * bits. */
#define INTEGERS(X)                                                                                \
    X(FI_INT8, int8_t)                                                                             \
    X(FI_UINT8, uint8_t)                                                                           \
    X(FI_INT16, int16_t)                                                                           \
    X(FI_UINT16, uint16_t)                                                                         \
    X(FI_INT32, int32_t)                                                                           \
    X(FI_UINT32, uint32_t)                                                                         \
    X(FI_INT64, int64_t)                                                                           \
    X(FI_UINT64, uint64_t)
#define REALS(X)                                                                                   \
    X(FI_FLOAT, float)                                                                             \
    X(FI_DOUBLE, double)                                                                           \
    X(FI_LONG_DOUBLE, long_double)
#define COMPLEX(X)                                                                                 \
    X(FI_FLOAT_COMPLEX, float_complex)                                                             \
    X(FI_DOUBLE_COMPLEX, double_complex)                                                           \
    X(FI_LONG_DOUBLE_COMPLEX, long_double_complex)
#define ALL(X) INTEGERS(X) REALS(X) COMPLEX(X)

/* One word each, to be pasted into names. */
#define long_double         long double
#define float_complex       float complex
#define double_complex      double complex
#define long_double_complex long double complex

size_t mrd_ofi_type_bytes(enum fi_datatype type)
{
    switch ((int)type) {
#define X(name, c)                                                                                 \
    case name:                                                                                     \
        return sizeof(c);
        ALL(X)
#undef X
    default:
        return 0;
    }
}

bool mrd_ofi_atomic_is_valid(enum mrd_ofi_atomic_kind kind, enum fi_datatype type, enum fi_op op)
{
    bool integer = type <= FI_UINT64,
         ordered = integer || type == FI_FLOAT || type == FI_DOUBLE || type == FI_LONG_DOUBLE;

    if (!mrd_ofi_type_bytes(type))
        return false;
    switch ((int)op) {
    case FI_MIN:
    case FI_MAX:
        return kind != MRD_OFI_ATOMIC_COMPARE && ordered;
    case FI_SUM:
    case FI_PROD:
    case FI_LOR:
    case FI_LAND:
    case FI_LXOR:
    case FI_ATOMIC_WRITE:
        return kind != MRD_OFI_ATOMIC_COMPARE;
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR:
        return kind != MRD_OFI_ATOMIC_COMPARE && integer;
    case FI_ATOMIC_READ:
        return kind == MRD_OFI_ATOMIC_FETCH;
    case FI_CSWAP:
    case FI_CSWAP_NE:
        return kind == MRD_OFI_ATOMIC_COMPARE;
    case FI_CSWAP_LE:
    case FI_CSWAP_LT:
    case FI_CSWAP_GE:
    case FI_CSWAP_GT:
        return kind == MRD_OFI_ATOMIC_COMPARE && ordered;
    case FI_MSWAP:
        return kind == MRD_OFI_ATOMIC_COMPARE && integer;
    default:
        return false;
    }
}

/* ---------------------------------------------------------------------------------- one element */

/* What all types have. Comparisons: `compare` OP `was`, as fi_atomic(3) defines them. */
#define COMMON(c)                                                                                  \
    case FI_LOR:                                                                                   \
        return (c)(was != 0 || operand != 0);                                                      \
    case FI_LAND:                                                                                  \
        return (c)(was != 0 && operand != 0);                                                      \
    case FI_LXOR:                                                                                  \
        return (c)((was != 0) != (operand != 0));                                                  \
    case FI_ATOMIC_WRITE:                                                                          \
        return operand;                                                                            \
    case FI_CSWAP:                                                                                 \
        return compare == was ? operand : was;                                                     \
    case FI_CSWAP_NE:                                                                              \
        return compare != was ? operand : was;
#define SUMS(c)                                                                                    \
    case FI_SUM:                                                                                   \
        return (c)(was + operand);                                                                 \
    case FI_PROD:                                                                                  \
        return (c)(was * operand);
/* Those of integers wrap around. */
#define WRAPS(c)                                                                                   \
    case FI_SUM:                                                                                   \
        return (c)((uint64_t)was + (uint64_t)operand);                                             \
    case FI_PROD:                                                                                  \
        return (c)((uint64_t)was * (uint64_t)operand);
#define ORDERED                                                                                    \
    case FI_MIN:                                                                                   \
        return operand < was ? operand : was;                                                      \
    case FI_MAX:                                                                                   \
        return operand > was ? operand : was;                                                      \
    case FI_CSWAP_LE:                                                                              \
        return compare <= was ? operand : was;                                                     \
    case FI_CSWAP_LT:                                                                              \
        return compare < was ? operand : was;                                                      \
    case FI_CSWAP_GE:                                                                              \
        return compare >= was ? operand : was;                                                     \
    case FI_CSWAP_GT:                                                                              \
        return compare > was ? operand : was;
#define BITS(c)                                                                                    \
    case FI_BOR:                                                                                   \
        return (c)(was | operand);                                                                 \
    case FI_BAND:                                                                                  \
        return (c)(was & operand);                                                                 \
    case FI_BXOR:                                                                                  \
        return (c)(was ^ operand);                                                                 \
    case FI_MSWAP:                                                                                 \
        return (c)((operand & compare) | (was & (c)~compare));

/* The new value, of an operation that the type has. */
#define FUNCTION(name, c, ...)                                                                     \
    static c new_##name(enum fi_op op, c was, c operand, c compare)                                \
    {                                                                                              \
        switch ((int)op) {                                                                         \
            __VA_ARGS__                                                                            \
        default:                                                                                   \
            return was;                                                                            \
        }                                                                                          \
    }

#define X(name, c) FUNCTION(name, c, COMMON(c) WRAPS(c) ORDERED BITS(c))
INTEGERS(X)
#undef X
#define X(name, c) FUNCTION(name, c, COMMON(c) SUMS(c) ORDERED)
REALS(X)
#undef X
#define X(name, c) FUNCTION(name, c, COMMON(c) SUMS(c))
COMPLEX(X)
#undef X

/* Writes the new value of an element to `result`. */
static void compute(enum fi_datatype type, enum fi_op op, const void *was, const void *operand,
                    const void *compare, void *result)
{
    switch ((int)type) {
#define X(name, c)                                                                                 \
    case name: {                                                                                   \
        c w, o = 0, v = 0;                                                                         \
                                                                                                   \
        memcpy(&w, was, sizeof(w));                                                                \
        if (operand)                                                                               \
            memcpy(&o, operand, sizeof(o));                                                        \
        if (compare)                                                                               \
            memcpy(&v, compare, sizeof(v));                                                        \
        w = new_##name(op, w, o, v);                                                               \
        memcpy(result, &w, sizeof(w));                                                             \
        break;                                                                                     \
    }
        ALL(X)
#undef X
    default:
        break;
    }
}

/* ------------------------------------------------------------------------------------- a target */

/* What the machine's own atomics work on. */
#define WORDS(X)                                                                                   \
    X(u8, uint8_t)                                                                                 \
    X(u16, uint16_t)                                                                               \
    X(u32, uint32_t)                                                                               \
    X(u64, uint64_t)

union word {
#define X(name, c) c name;
    WORDS(X)
#undef X
};

static void load(const void *target, size_t bytes, union word *word)
{
    switch (bytes) {
#define X(name, c)                                                                                 \
    case sizeof(c):                                                                                \
        word->name = __atomic_load_n((const c *)target, __ATOMIC_SEQ_CST);                         \
        break;
        WORDS(X)
#undef X
    default:
        break;
    }
}

/* False: it was not as expected; *was is what it is. */
static bool replace(void *target, size_t bytes, union word *was, const union word *by)
{
    switch (bytes) {
#define X(name, c)                                                                                 \
    case sizeof(c):                                                                                \
        return __atomic_compare_exchange_n((c *)target, &was->name, by->name, false,               \
                                           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        WORDS(X)
#undef X
    default:
        return true;
    }
}

/* Again until nobody changed it meanwhile. A value that stays is not written. */
static void apply_word(enum fi_datatype type, enum fi_op op, void *target, size_t bytes,
                       const void *operand, const void *compare, void *old)
{
    union word was = {0}, now = {0};

    load(target, bytes, &was);
    do
        compute(type, op, &was, operand, compare, &now);
    while (memcmp(&now, &was, bytes) != 0 && !replace(target, bytes, &was, &now));
    if (old)
        memcpy(old, &was, bytes);
}

static const void *at(const void *list, size_t offset)
{
    return list ? (const char *)list + offset : NULL;
}

void mrd_ofi_apply(enum fi_datatype type, enum fi_op op, void *target, const void *operand,
                   const void *compare, void *old, size_t count)
{
    size_t bytes = mrd_ofi_type_bytes(type);

    for (size_t i = 0; i < count; i++) {
        size_t offset = i * bytes;
        char *element = (char *)target + offset, *kept = old ? (char *)old + offset : NULL;
        const void *o = at(operand, offset), *c = at(compare, offset);
        char was[ELEMENT_MAX];

        if (bytes <= sizeof(union word) && (uintptr_t)element % bytes == 0) {
            apply_word(type, op, element, bytes, o, c, kept);
            continue;
        }
        memcpy(was, element, bytes);
        compute(type, op, was, o, c, element);
        if (kept)
            memcpy(kept, was, bytes);
    }
}
