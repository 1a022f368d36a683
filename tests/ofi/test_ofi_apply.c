/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nothing is lost of what several do to one word at the same time: the target's program by messages
 * of elements of all sizes; mrd's thread, or the application's own processor, by the machine's
 * atomics.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "pair.h"
#include "transport/adapters/ofi/apply.h"

/*
 * Sums of a word of 64 bits and of its lower part leave in that part their sum, modulo its size.
 * What is in the rest depends on who was first.
 */
static const struct {
    enum fi_datatype type;
    size_t bytes;
} sizes[] = {{FI_UINT8, 1}, {FI_UINT16, 2}, {FI_UINT32, 4}, {FI_UINT64, 8}};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Where the lower part of a word is. */
static size_t low(size_t bytes)
{
    const uint64_t one = 1;

    return *(const uint8_t *)&one == 1 ? 0 : sizeof(uint64_t) - bytes;
}

static uint64_t mask(size_t bytes)
{
    return UINT64_MAX >> (64 - 8 * bytes);
}

/* One, as the lower part has it. */
static const void *one_of(size_t bytes)
{
    static const uint64_t one = 1;

    return (const char *)&one + low(bytes);
}

/* ------------------------------------------------------------------------------ by the function */

enum { TIMES = 200000 };

static void *add_natively(void *word)
{
    for (unsigned i = 0; i < TIMES; i++)
        __atomic_fetch_add((uint64_t *)word, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

TEST(ofi_apply__lower_part_of_a_word)
{
    static uint64_t word;
    pthread_t thread;

    for (unsigned s = 0; s < SIZES; s++) {
        char *part = (char *)&word + low(sizes[s].bytes);

        word = 0;
        assert_int_equal(pthread_create(&thread, NULL, add_natively, &word), 0);
        for (unsigned i = 0; i < TIMES; i++)
            mrd_ofi_apply(sizes[s].type, FI_SUM, part, one_of(sizes[s].bytes), NULL, NULL, 1);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(word & mask(sizes[s].bytes), 2 * TIMES & mask(sizes[s].bytes));
    }
}

/* Of a vector over several words; and what changes nothing takes nothing back. */
TEST(ofi_apply__what_changes_nothing)
{
    static const enum fi_op ops[] = {FI_MAX, FI_SUM, FI_BOR, FI_BXOR};
    static const uint8_t none[16];
    static uint64_t words[2];
    pthread_t thread;

    for (unsigned s = 0; s < SIZES; s++) {
        words[0] = words[1] = 0;
        assert_int_equal(pthread_create(&thread, NULL, add_natively, &words[1]), 0);
        for (unsigned i = 0; i < TIMES / 2; i++)
            mrd_ofi_apply(sizes[s].type, ops[i % 4], words, none, NULL, NULL, 16 / sizes[s].bytes);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(words[0], 0);
        assert_int_equal(words[1], TIMES);
    }
}

/* Comparing and swapping, and adding natively: a swap of what is not there any more fails. */
TEST(ofi_apply__swaps)
{
    static uint64_t word;
    unsigned swapped[SIZES] = {0};
    pthread_t thread;

    for (unsigned s = 0; s < SIZES; s++) {
        size_t bytes = sizes[s].bytes;
        char *part = (char *)&word + low(bytes);
        uint64_t was = 0, next = 0;

        word = 0;
        assert_int_equal(pthread_create(&thread, NULL, add_natively, &word), 0);
        for (unsigned i = 0; i < TIMES; i++) {
            uint64_t old = 0;

            next = was + 1;
            mrd_ofi_apply(sizes[s].type, FI_CSWAP, part, (char *)&next + low(bytes),
                          (char *)&was + low(bytes), (char *)&old + low(bytes), 1);
            swapped[s] += old == was;
            was = old == was ? next & mask(bytes) : old;
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(word & mask(bytes), (TIMES + swapped[s]) & mask(bytes));
    }
}

struct storer {
    pthread_t thread;
    uint64_t *target;
    bool lost;
};

static void *store_often(void *arg)
{
    struct storer *s = arg;

    for (uint64_t i = 0; i < TIMES && !s->lost; i++) {
        __atomic_store_n(s->target, i << 32, __ATOMIC_SEQ_CST);
        s->lost = __atomic_load_n(s->target, __ATOMIC_SEQ_CST) >> 32 != i;
    }
    return NULL;
}

/* What the application's own processor stores is not replaced by a sum of what was there before. */
TEST(ofi_apply__stores_of_the_application)
{
    static uint64_t word;
    struct storer s = {.target = &word};

    word = 0;
    assert_int_equal(pthread_create(&s.thread, NULL, store_often, &s), 0);
    for (unsigned i = 0; i < TIMES; i++)
        mrd_ofi_apply(FI_UINT64, FI_SUM, &word, one_of(8), NULL, NULL, 1);
    assert_int_equal(pthread_join(s.thread, NULL), 0);
    assert_false(s.lost);
}

/* ----------------------------------------------------------------------------- by two endpoints */

enum { KEY = 4, MESSAGES = 4000, FLIGHT = 64, TARGETS = 8, WORDS = SIZES + 2 };

/* Two peers of two endpoints of one domain: after the first, only mrd's own thread looks. */
struct world {
    struct end *native, *program;  /* targets */
    struct end *adder, *messenger; /* peers */
    uint64_t *words;
    uint64_t added[WORDS]; /* natively */
    atomic_bool enough;
};

static void world_open(struct world *w)
{
    const struct end_options o = {.threading = FI_THREAD_SAFE};
    uint64_t none = 0;

    memset(w, 0, sizeof(*w));
    w->words = zeros(WORDS * sizeof(*w->words));
    w->native = end_new(&o, NULL);
    w->program = end_new(&o, w->native);
    w->adder = end_new(&o, NULL);
    w->messenger = end_new(&o, NULL);
    w->adder->to = end_meet(w->adder, w->native);
    w->messenger->to = end_meet(w->messenger, w->program);
    end_register(w->native, w->words, WORDS * sizeof(*w->words), REGION_ACCESS, KEY);
    /* After this the key is known: the target's program is not needed any more. */
    POST(fi_atomic(w->adder->ep, &none, 1, NULL, w->adder->to, 0, KEY, FI_UINT64, FI_SUM, w));
    end_ok(w->adder->tx, w);
}

/* Adds 1 to each word in turn by atomics of mrd's, until there is enough. NULL: all went well. */
static void *add_by_mrd(void *arg)
{
    struct world *w = arg;
    uint64_t posted = 0, done = 0;
    struct entry entry = {.err = 0};

    while (!entry.err && (done < posted || !atomic_load(&w->enough))) {
        unsigned word = (unsigned)(posted % WORDS);

        if (!atomic_load(&w->enough) && posted - done < FLIGHT &&
            fi_atomic(w->adder->ep, one_of(8), 1, NULL, w->adder->to, word * 8, KEY, FI_UINT64,
                      FI_SUM, NULL) == 0) {
            posted++;
            w->added[word]++;
        }
        done += end_take(w->adder->tx, &entry);
    }
    return entry.err ? w : NULL;
}

/* One message that goes to the same `num` elements at `offset` TARGETS times. */
static void post(struct world *w, enum fi_datatype type, enum fi_op op, const void *operands,
                 size_t offset, size_t num)
{
    struct fi_ioc from = {(void *)(uintptr_t)operands, TARGETS * num};
    struct fi_rma_ioc targets[TARGETS];
    struct fi_msg_atomic msg = {.msg_iov = &from,
                                .iov_count = 1,
                                .addr = w->messenger->to,
                                .rma_iov = targets,
                                .rma_iov_count = TARGETS,
                                .datatype = type,
                                .op = op};
    uint64_t since_ns = end_now_ns();
    ssize_t result;

    for (unsigned i = 0; i < TARGETS; i++)
        targets[i] = (struct fi_rma_ioc){offset, num, KEY};
    while ((result = fi_atomicmsg(w->messenger->ep, &msg, 0)) == -FI_EAGAIN) {
        (void)fi_cq_read(w->program->rx, NULL, 0);
        end_patience(since_ns);
    }
    assert_int_equal(result, 0);
}

/*
 * Of each turn: to the lower part of one word for each size; to two words of 64 bits at once; and
 * over the last word, as bytes, what changes nothing. Returns how many a turn has.
 */
static unsigned post_turn(struct world *w)
{
    static const uint8_t none[TARGETS * 8];
    uint8_t ones[TARGETS * 8];
    uint64_t words[TARGETS * 2];

    for (unsigned s = 0; s < SIZES; s++) {
        for (unsigned i = 0; i < TARGETS; i++)
            memcpy(ones + i * sizes[s].bytes, one_of(sizes[s].bytes), sizes[s].bytes);
        post(w, sizes[s].type, FI_SUM, ones, s * 8 + low(sizes[s].bytes), 1);
    }
    for (unsigned i = 0; i < TARGETS * 2; i++)
        words[i] = 1;
    post(w, FI_UINT64, FI_SUM, words, (SIZES - 1) * 8, 2);
    post(w, FI_UINT8, FI_MAX, none, (WORDS - 1) * 8, 8);
    return SIZES + 2;
}

/*
 * The first endpoint's additions are mrd's, and nobody calls for it meanwhile: its thread makes
 * them. The other's messages are applied in this thread.
 */
TEST(ofi_apply__by_two_peers)
{
    enum { TOTAL = MESSAGES * TARGETS };
    unsigned posted = 0, done = 0, turns = 0;
    struct entry entry;
    struct world w;
    pthread_t thread;
    void *wrong;

    world_open(&w);
    assert_int_equal(pthread_create(&thread, NULL, add_by_mrd, &w), 0);
    while (turns < MESSAGES || done < posted) {
        if (turns < MESSAGES && posted - done < FLIGHT) {
            posted += post_turn(&w);
            turns++;
        }
        (void)fi_cq_read(w.program->rx, NULL, 0);
        for (; end_take(w.messenger->tx, &entry); done++)
            assert_int_equal(entry.err, 0);
    }
    atomic_store(&w.enough, true);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
    for (unsigned s = 0; s + 1 < SIZES; s++)
        assert_int_equal(w.words[s] & mask(sizes[s].bytes),
                         (w.added[s] + TOTAL) & mask(sizes[s].bytes));
    assert_int_equal(w.words[SIZES - 1], w.added[SIZES - 1] + 2 * TOTAL);
    assert_int_equal(w.words[SIZES], w.added[SIZES] + TOTAL);
    assert_int_equal(w.words[SIZES + 1], w.added[SIZES + 1]);
}
