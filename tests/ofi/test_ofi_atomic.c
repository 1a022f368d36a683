/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomics: each operation on each type against what fi_atomic(3) says, and none lost among several. */
#include "pair.h"

#include <stdalign.h>
#include <string.h>

enum { KEY = 3, ELEMENTS = 6, ELEMENT_MAX = 32, OFFSET = 64, BYTES = 4096 };

/* Which kind of call. */
enum kind { WRITE, FETCH, COMPARE, KINDS };

/* ---------------------------------------------------------------------------------- what is right */

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
    X(FI_LONG_DOUBLE, long double)
#define COMPLEXES(X)                                                                               \
    X(FI_FLOAT_COMPLEX, float _Complex)                                                            \
    X(FI_DOUBLE_COMPLEX, double _Complex)                                                          \
    X(FI_LONG_DOUBLE_COMPLEX, long double _Complex)

static bool is_integer(enum fi_datatype type)
{
    return type <= FI_UINT64;
}

static bool is_complex(enum fi_datatype type)
{
    return type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX || type == FI_LONG_DOUBLE_COMPLEX;
}

/* Complex numbers are not ordered, and only integers have bits. */
static bool makes_sense(enum fi_datatype type, enum fi_op op)
{
    switch ((int)op) {
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR:
    case FI_MSWAP:
        return is_integer(type);
    case FI_MIN:
    case FI_MAX:
    case FI_CSWAP_LE:
    case FI_CSWAP_LT:
    case FI_CSWAP_GE:
    case FI_CSWAP_GT:
        return !is_complex(type);
    default:
        return true;
    }
}

static bool is_of_kind(enum kind kind, enum fi_op op)
{
    if (op >= FI_CSWAP)
        return kind == COMPARE;
    return op == FI_ATOMIC_READ ? kind == FETCH : kind != COMPARE;
}

/* The new value of an element, as fi_atomic(3) has it: addr, buf and compare are `a`, `b` and `c`. */
#define ANY_STEP(T)                                                                                \
    case FI_SUM:                                                                                   \
        return (T)(a + b);                                                                         \
    case FI_PROD:                                                                                  \
        return (T)(a * b);                                                                         \
    case FI_LOR:                                                                                   \
        return a != 0 || b != 0 ? 1 : 0;                                                           \
    case FI_LAND:                                                                                  \
        return a != 0 && b != 0 ? 1 : 0;                                                           \
    case FI_LXOR:                                                                                  \
        return (a != 0 && b == 0) || (a == 0 && b != 0) ? 1 : 0;                                   \
    case FI_ATOMIC_WRITE:                                                                          \
        return b;                                                                                  \
    case FI_CSWAP:                                                                                 \
        return c == a ? b : a;                                                                     \
    case FI_CSWAP_NE:                                                                              \
        return c != a ? b : a;
#define ORDERED_STEP                                                                               \
    case FI_MIN:                                                                                   \
        return b < a ? b : a;                                                                      \
    case FI_MAX:                                                                                   \
        return b > a ? b : a;                                                                      \
    case FI_CSWAP_LE:                                                                              \
        return c <= a ? b : a;                                                                     \
    case FI_CSWAP_LT:                                                                              \
        return c < a ? b : a;                                                                      \
    case FI_CSWAP_GE:                                                                              \
        return c >= a ? b : a;                                                                     \
    case FI_CSWAP_GT:                                                                              \
        return c > a ? b : a;
#define BIT_STEP(T)                                                                                \
    case FI_BOR:                                                                                   \
        return (T)(a | b);                                                                         \
    case FI_BAND:                                                                                  \
        return (T)(a & b);                                                                         \
    case FI_BXOR:                                                                                  \
        return (T)(a ^ b);                                                                         \
    case FI_MSWAP:                                                                                 \
        return (T)((b & c) | (a & ~c));

/* Values whose results are exact in each type; comparisons go all three ways. */
static const int was[ELEMENTS] = {6, 6, 6, 0, -3, 1};
static const int with[ELEMENTS] = {3, 7, 9, 5, 2, 0};
static const int against[ELEMENTS] = {6, 5, 7, 0, -3, 0};

#define FUNCTIONS(name, T, ...)                                                                    \
    static T step_##name(enum fi_op op, T a, T b, T c)                                             \
    {                                                                                              \
        switch ((int)op) {                                                                         \
            __VA_ARGS__                                                                            \
        default:                                                                                   \
            return a; /* FI_ATOMIC_READ */                                                         \
        }                                                                                          \
    }                                                                                              \
    static void fill_##name(void *list, const int *values)                                         \
    {                                                                                              \
        for (unsigned i = 0; i < ELEMENTS; i++)                                                    \
            ((T *)list)[i] = (T)values[i];                                                         \
    }                                                                                              \
    /* Which element is not what the operation makes of it, or was not what it returned. */        \
    static unsigned check_##name(enum fi_op op, const void *now, const void *old)                  \
    {                                                                                              \
        for (unsigned i = 0; i < ELEMENTS; i++) {                                                  \
            T a = (T)was[i];                                                                       \
                                                                                                   \
            if (((const T *)now)[i] != step_##name(op, a, (T)with[i], (T)against[i]))              \
                return i;                                                                          \
            if (old && ((const T *)old)[i] != a)                                                   \
                return i;                                                                          \
        }                                                                                          \
        return ELEMENTS;                                                                           \
    }

#define X(name, T) FUNCTIONS(name, T, ANY_STEP(T) ORDERED_STEP BIT_STEP(T))
INTEGERS(X)
#undef X
#define X(name, T) FUNCTIONS(name, T, ANY_STEP(T) ORDERED_STEP)
REALS(X)
#undef X
#define X(name, T) FUNCTIONS(name, T, ANY_STEP(T))
COMPLEXES(X)
#undef X

static const struct {
    size_t bytes;
    void (*fill)(void *list, const int *values);
    unsigned (*check)(enum fi_op op, const void *now, const void *old);
} types[FI_DATATYPE_LAST] = {
#define X(name, T) [name] = {sizeof(T), fill_##name, check_##name},
    INTEGERS(X) REALS(X) COMPLEXES(X)
#undef X
};

/* ------------------------------------------------------------------------------------ one operation */

/* Lists of ELEMENTS of any type. */
struct lists {
    alignas(64) uint8_t operand[ELEMENTS * ELEMENT_MAX], compare[ELEMENTS * ELEMENT_MAX],
        result[ELEMENTS * ELEMENT_MAX];
};

/* The context is the lists. */
static ssize_t post(struct end *a, enum kind kind, enum fi_datatype type, enum fi_op op,
                    struct lists *l, size_t num, uint64_t at, uint64_t key)
{
    const void *operand = op == FI_ATOMIC_READ ? NULL : l->operand;

    switch (kind) {
    case WRITE:
        return fi_atomic(a->ep, operand, num, NULL, a->to, at, key, type, op, l);
    case FETCH:
        return fi_fetch_atomic(a->ep, operand, num, NULL, l->result, NULL, a->to, at, key, type, op,
                               l);
    default:
        return fi_compare_atomic(a->ep, operand, num, NULL, l->compare, NULL, l->result, NULL,
                                 a->to, at, key, type, op, l);
    }
}

static int query(struct end *e, enum kind kind, enum fi_datatype type, enum fi_op op,
                 struct fi_atomic_attr *attr)
{
    static const uint64_t flags[KINDS] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};

    return fi_query_atomic(e->domain, type, op, attr, flags[kind]);
}

/* Whether a domain says so or the endpoint. */
static int ask(struct end *e, enum kind kind, enum fi_datatype type, enum fi_op op, size_t *count)
{
    switch (kind) {
    case WRITE:
        return fi_atomicvalid(e->ep, type, op, count);
    case FETCH:
        return fi_fetch_atomicvalid(e->ep, type, op, count);
    default:
        return fi_compare_atomicvalid(e->ep, type, op, count);
    }
}

static void run_one(struct pair *p, enum kind kind, enum fi_datatype type, enum fi_op op)
{
    size_t bytes = ELEMENTS * types[type].bytes;
    uint8_t *target = p->memory + OFFSET;
    struct lists l;

    memset(p->memory, BLANK, BYTES);
    types[type].fill(target, was);
    types[type].fill(l.operand, with);
    types[type].fill(l.compare, against);
    memset(l.result, 0, sizeof(l.result));
    POST(post(&p->a, kind, type, op, &l, ELEMENTS, OFFSET, KEY));
    assert_true(end_ok(p->a.tx, &l).ok.flags & FI_ATOMIC);
    unsigned wrong = types[type].check(op, target, kind == WRITE ? NULL : l.result);
    if (wrong < ELEMENTS)
        fail_msg("kind %d, type %d, op %d: element %u is wrong", kind, type, op, wrong);
    assert_blank(p->memory, OFFSET);
    assert_blank(target + bytes, BYTES - OFFSET - bytes);
}

TEST_F(plain, ofi_atomic__all_operations_on_all_types)
{
    unsigned num = 0;

    pair_register(self, BYTES, KEY);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int type = 0; type < FI_DATATYPE_LAST; type++) {
            for (int op = 0; op < FI_ATOMIC_OP_LAST; op++) {
                if (!is_of_kind(kind, op) || !makes_sense(type, op))
                    continue;
                run_one(self, kind, type, op);
                num++;
            }
        }
    }
    /* 14 types, 11 of them ordered, 8 of them of bits. */
    assert_int_equal(num, 2 * (14 * 6 + 11 * 2 + 8 * 3) + 14 + 14 * 2 + 11 * 4 + 8);
}

/* One element of 64 bits goes another way than several, or than one of fewer bits. */
TEST_F(plain, ofi_atomic__one_element)
{
    pair_register(self, BYTES, KEY);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int op = 0; op < FI_ATOMIC_OP_LAST; op++) {
            struct lists l = {.operand = {0}};
            uint64_t now, old, b = 0x1111111122222222u, a = 0x3333333344444444u;

            if (!is_of_kind(kind, op))
                continue;
            memset(self->memory, BLANK, BYTES);
            memcpy(self->memory + 8, &a, 8);
            memcpy(l.operand, &b, 8);
            memcpy(l.compare, &a, 8);
            POST(post(&self->a, kind, FI_UINT64, op, &l, 1, 8, KEY));
            end_ok(self->a.tx, &l);
            memcpy(&now, self->memory + 8, 8);
            memcpy(&old, l.result, 8);
            assert_true(now == step_FI_UINT64(op, a, b, a));
            assert_true(kind == WRITE || old == a);
            assert_blank(self->memory, 8);
            assert_blank(self->memory + 16, 100);
        }
    }
}

/* ----------------------------------------------------------------------------------------- queries */

TEST_F(plain, ofi_atomic__query_tells_the_truth)
{
    struct lists l = {.operand = {0}};

    pair_register(self, BYTES, KEY);
    memset(self->memory, 0, BYTES);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int type = 0; type <= FI_UINT128; type++) {
            for (int op = 0; op <= FI_ATOMIC_OP_LAST; op++) {
                bool right = type < FI_DATATYPE_LAST && op < FI_ATOMIC_OP_LAST &&
                             is_of_kind(kind, op) && makes_sense(type, op);
                struct fi_atomic_attr attr = {0};
                int result = query(&self->a, kind, type, op, &attr);
                size_t count = 0;

                assert_int_equal(result, right ? 0 : -FI_EOPNOTSUPP);
                assert_int_equal(ask(&self->a, kind, type, op, &count), result);
                if (right) {
                    assert_int_equal(attr.size, types[type].bytes);
                    assert_true(attr.count >= ELEMENTS);
                    assert_int_equal(count, attr.count);
                } else {
                    assert_int_equal(post(&self->a, kind, type, op, &l, 1, 0, KEY), -FI_EOPNOTSUPP);
                }
            }
        }
    }
    end_silent(self->a.tx);
}

/* As many as the query says, and not one more. */
TEST_F(plain, ofi_atomic__as_many_as_there_may_be)
{
    struct end *a = &self->a;
    struct fi_atomic_attr attr;
    int tx;

    assert_int_equal(query(a, FETCH, FI_UINT32, FI_BXOR, &attr), 0);
    size_t bytes = (attr.count + 1) * 4;
    uint32_t *operand = zeros(bytes), *result = zeros(bytes), *memory = zeros(bytes);
    for (uint32_t i = 0; i <= attr.count; i++) {
        operand[i] = 0x1000000 + i;
        memory[i] = i * i;
    }
    end_register(&self->b, memory, bytes, REGION_ACCESS, KEY);
    POST(fi_fetch_atomic(a->ep, operand, attr.count, NULL, result, NULL, a->to, 0, KEY, FI_UINT32,
                         FI_BXOR, &tx));
    end_ok(a->tx, &tx);
    for (uint32_t i = 0; i < attr.count; i++) {
        assert_int_equal(result[i], i * i);
        assert_int_equal(memory[i], (i * i) ^ (0x1000000 + i));
    }
    assert_int_equal(memory[attr.count], attr.count * attr.count);
    assert_true(fi_fetch_atomic(a->ep, operand, attr.count + 1, NULL, result, NULL, a->to, 0, KEY,
                                FI_UINT32, FI_BXOR, &tx) < 0);
}

/* ------------------------------------------------------------------------------- lists and refusals */

TEST_F(pair, ofi_atomic__lists_and_injected)
{
    uint16_t operand[6] = {1, 2, 3, 4, 5, 6}, result[6] = {0};
    struct fi_ioc from[2] = {{operand, 2}, {operand + 2, 4}};
    struct fi_ioc to[2] = {{result, 5}, {result + 5, 1}};
    struct fi_rma_ioc ranges[2] = {{100, 3, KEY}, {200, 3, KEY}};
    struct fi_msg_atomic msg = {.msg_iov = from,
                                .iov_count = 2,
                                .rma_iov = ranges,
                                .rma_iov_count = 2,
                                .datatype = FI_UINT16,
                                .op = FI_SUM,
                                .context = from};
    struct end *a = &self->a;

    pair_open(self, &(struct end_options){.counts = FI_WRITE});
    pair_register(self, BYTES, KEY);
    msg.addr = a->to;
    memset(self->memory, 0, BYTES);
    POST(fi_atomicmsg(a->ep, &msg, 0));
    end_ok(a->tx, from);
    assert_memory_equal(self->memory + 100, operand, 6);
    assert_memory_equal(self->memory + 200, operand + 3, 6);
    POST(fi_fetch_atomicmsg(a->ep, &msg, to, NULL, 2, 0));
    end_ok(a->tx, from);
    assert_memory_equal(result, operand, 12);
    assert_int_equal(((uint16_t *)(void *)(self->memory + 200))[2], 12);

    POST(fi_inject_atomic(a->ep, operand, 6, a->to, 300, KEY, FI_UINT16, FI_SUM));
    operand[0] = 99;
    UNTIL(fi_cntr_read(end_cntr(a, FI_WRITE)) >= 2);
    assert_int_equal(((uint16_t *)(void *)(self->memory + 300))[0], 1);
    assert_int_equal(((uint16_t *)(void *)(self->memory + 300))[5], 6);
    end_silent(a->tx);
}

static void fails(struct end *a, enum kind kind, enum fi_datatype type, size_t num, uint64_t at,
                  uint64_t key, int err)
{
    struct lists l = {.operand = {1}};

    POST(post(a, kind, type, kind == COMPARE ? FI_CSWAP : FI_SUM, &l, num, at, key));
    end_fails(a->tx, &l, err);
}

TEST_F(plain, ofi_atomic__refused)
{
    struct end *a = &self->a;

    pair_register(self, BYTES, KEY);
    for (int type = FI_UINT32; type <= FI_UINT64; type++) {
        for (int kind = 0; kind < KINDS; kind++) {
            fails(a, kind, type, 1, BYTES, KEY, FI_EINVAL);
            fails(a, kind, type, 2, BYTES - types[type].bytes, KEY, FI_EINVAL);
            fails(a, kind, type, 1, UINT64_MAX - 7, KEY, FI_EINVAL);
        }
    }
    fails(a, WRITE, FI_UINT64, 1, 0, KEY + 1, FI_ENOKEY);
    fails(a, WRITE, FI_UINT8, 1, 0, KEY + 1, FI_ENOKEY);
    end_register(&self->b, self->memory, BYTES, FI_REMOTE_READ, KEY + 1);
    fails(a, WRITE, FI_UINT64, 1, 0, KEY + 1, FI_EACCES);
    fails(a, WRITE, FI_UINT8, 1, 0, KEY + 1, FI_EACCES);
    assert_blank(self->memory, BYTES);
}

/* Who fetches reads: a region that may only be written to is added to, and shows nothing. */
TEST_F(plain, ofi_atomic__write_only)
{
    struct lists l = {.operand = {1}};
    struct end *a = &self->a, *b = &self->b;
    uint8_t *memory = blank(BYTES);

    struct fid_mr *mr = end_register(b, memory, BYTES, FI_REMOTE_WRITE, KEY);
    for (int type = FI_UINT32; type <= FI_UINT64; type++) {
        fails(a, FETCH, type, 1, 0, KEY, FI_EACCES);
        fails(a, COMPARE, type, 1, 0, KEY, FI_EACCES);
    }
    assert_blank(memory, BYTES);
    POST(post(a, WRITE, FI_UINT64, FI_SUM, &l, 1, 0, KEY));
    end_ok(a->tx, &l);

    /* Another region under its key is not taken for it. */
    end_unregister(b, mr);
    end_register(b, memory, BYTES, REGION_ACCESS, KEY);
    POST(post(a, FETCH, FI_UINT64, FI_SUM, &l, 1, 0, KEY));
    end_ok(a->tx, &l);
    l.result[0]++; /* since then it was added once */
    assert_memory_equal(l.result, memory, sizeof(uint64_t));
}

/* -------------------------------------------------------------------------------------- none is lost */

/* Adds to word 0 by comparing and swapping, until it has. */
struct swapper {
    struct end *end;
    uint64_t seen, next, old;
    unsigned left;
    bool posted;
};

static void swap_on(struct swapper *s)
{
    struct entry entry;

    if (!s->posted && s->left) {
        s->next = s->seen + 1000000;
        POST(fi_compare_atomic(s->end->ep, &s->next, 1, NULL, &s->seen, NULL, &s->old, NULL,
                               s->end->to, 0, KEY, FI_UINT64, FI_CSWAP, s));
        s->posted = true;
    }
    if (!s->posted || !end_take(s->end->tx, &entry))
        return;
    assert_int_equal(entry.err, 0);
    s->posted = false;
    if (s->old == s->seen)
        s->left--;
    s->seen = s->old == s->seen ? s->next : s->old;
}

/*
 * One initiator adds once with each call, another one often, a third swaps: all to one word. The
 * target's program applies those of the second, and mrd's thread the others, at the same time.
 */
TEST_F(plain, ofi_atomic__none_lost_on_one_word)
{
    enum { ADDS = 10000, LISTS = 10000, TIMES = 8, SWAPS = 100, FLIGHT = 64 };
    const struct end_options o = {0};
    uint64_t one[TIMES] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct fi_ioc from = {one, TIMES};
    struct fi_rma_ioc targets[TIMES];
    struct fi_msg_atomic msg = {.msg_iov = &from,
                                .iov_count = 1,
                                .rma_iov = targets,
                                .rma_iov_count = TIMES,
                                .datatype = FI_UINT64,
                                .op = FI_SUM};
    unsigned adds = 0, added = 0, lists = 0, listed = 0;
    struct swapper s = {.left = SWAPS};
    uint64_t since_ns = end_now_ns();
    struct end *a = &self->a, *other = end_new(&o, NULL);
    struct entry entry;

    pair_register(self, BYTES, KEY);
    msg.addr = end_meet(other, &self->b);
    s.end = end_new(&o, NULL);
    s.end->to = end_meet(s.end, &self->b);
    for (unsigned i = 0; i < TIMES; i++)
        targets[i] = (struct fi_rma_ioc){0, 1, KEY};
    uint64_t *word = (uint64_t *)(void *)self->memory;
    *word = 0;
    while (added < ADDS || listed < LISTS || s.left) {
        for (; adds < ADDS && adds - added < FLIGHT; adds++)
            POST(fi_atomic(a->ep, one, 1, NULL, a->to, 0, KEY, FI_UINT64, FI_SUM, NULL));
        for (; lists < LISTS && lists - listed < FLIGHT; lists++)
            POST(fi_atomicmsg(other->ep, &msg, 0));
        swap_on(&s);
        for (; end_take(a->tx, &entry); added++)
            assert_int_equal(entry.err, 0);
        for (; end_take(other->tx, &entry); listed++)
            assert_int_equal(entry.err, 0);
        ends_drive();
        end_patience(since_ns);
    }
    assert_int_equal(*word, ADDS + LISTS * TIMES + SWAPS * 1000000ull);
    assert_blank(self->memory + 8, BYTES - 8);
}

/*
 * fi_endpoint(3): what is fetched or compared counts as read at the target, other atomics as
 * written, whoever applies them. Of a region, all that may change it count.
 */
TEST_F(pair, ofi_atomic__target_counts)
{
    struct lists l = {.operand = {1}};
    uint8_t *memory = blank(BYTES);
    struct end *a = &self->a, *b = &self->b;
    struct fid_cntr *of_region;
    struct fid_mr *mr;

    pair_open(self, &(struct end_options){.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_RMA_EVENT,
                                          .counts = FI_REMOTE_READ | FI_REMOTE_WRITE});
    assert_int_equal(fi_cntr_open(b->domain, &(struct fi_cntr_attr){0}, &of_region, NULL), 0);
    assert_int_equal(
        fi_mr_reg(b->domain, memory, BYTES, REGION_ACCESS, 0, KEY, FI_RMA_EVENT, &mr, NULL), 0);
    assert_int_equal(fi_mr_bind(mr, &of_region->fid, FI_REMOTE_WRITE), 0);
    for (unsigned n = 1; n <= 2; n++) { /* mrd's own, and by a message */
        POST(post(a, WRITE, FI_UINT64, FI_SUM, &l, n, 0, KEY));
        end_ok(a->tx, &l);
        UNTIL(fi_cntr_read(end_cntr(b, FI_REMOTE_WRITE)) == n);
        POST(post(a, FETCH, FI_UINT64, FI_SUM, &l, n, 0, KEY));
        end_ok(a->tx, &l);
        POST(post(a, COMPARE, FI_UINT64, FI_CSWAP, &l, n, 0, KEY));
        end_ok(a->tx, &l);
        ends_drive_for(SILENCE_MS);
        assert_int_equal(fi_cntr_read(end_cntr(b, FI_REMOTE_READ)), 2 * n);
        assert_int_equal(fi_cntr_read(end_cntr(b, FI_REMOTE_WRITE)), n);
        assert_int_equal(fi_cntr_read(of_region), 3 * n);
    }
    /* A region that is only read does not change. */
    POST(post(a, FETCH, FI_UINT64, FI_ATOMIC_READ, &l, 1, 0, KEY));
    end_ok(a->tx, &l);
    ends_drive_for(SILENCE_MS);
    assert_int_equal(fi_cntr_read(end_cntr(b, FI_REMOTE_READ)), 5);
    assert_int_equal(fi_cntr_read(of_region), 6);
    assert_int_equal(fi_close(&mr->fid), 0);
    assert_int_equal(fi_close(&of_region->fid), 0);
}
