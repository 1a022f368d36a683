/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests that register themselves; cmocka runs them, and its assertions are what they say.
 *
 *     TEST(mrd_seq_before__wraps)
 *     {
 *         assert_true(mrd_seq_before(UINT32_MAX, 0));
 *     }
 *
 * A fixture is what several tests begin with. Its setup runs before each of them, on a struct of
 * zeros; its teardown after it, also when an assertion of the test fails:
 *
 *     FIXTURE(pool)
 *     {
 *         struct mrd_pool pool;
 *     };
 *
 *     FIXTURE_SETUP(pool)
 *     {
 *         mrd_pool_init(&self->pool, 8);
 *     }
 *
 *     FIXTURE_TEARDOWN(pool)
 *     {
 *         mrd_pool_fini(&self->pool);
 *     }
 *
 *     TEST_F(pool, mrd_pool_alloc__until_it_is_empty)
 *     {
 *         assert_non_null(mrd_pool_alloc(&self->pool));
 *     }
 *
 * The fixture is `struct pool`, which helpers may take. FIXTURE(pool) in a header, its setup and
 * teardown in a source, or static in the header, share it. Where tests call begin(), too, with a
 * struct of their own, FIXTURE_FROM(pool, begin, end) stands for both. kit.c has main(): a program's tests run
 * in the order of their lines, or those only whose names match a pattern that it is given.
 */
#ifndef MRD_TESTS_KIT_H
#define MRD_TESTS_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { KIT_SKIPPED = 77 }; /* exit status of a program that cannot run here */

struct kit_fixture {
    size_t bytes;
    void (*setup)(void *self);
    void (*teardown)(void *self);
};

/* Made by the macros below, one for each test. */
struct kit_test {
    const char *name;
    const char *file;
    int line;
    const struct kit_fixture *fixture; /* NULL: none */
    void (*prepare)(void *self);       /* before the setup; NULL: nothing */
    void (*run)(void *self);
    struct kit_test *next;
};

void kit_add(struct kit_test *test);

/*
 * Of a program that needs something before its first test. Anything but 0 is what it exits with,
 * and no test runs: KIT_SKIPPED, after it said why. kit.c has one that does nothing.
 */
int kit_before_all(void);
/* Likewise, before each test and its setup. */
void kit_before_each(void);
/* After the last test. What it returns is added to the exit status. */
int kit_after_all(void);

/* To run once after this test and its teardown, also if it fails; asked twice, it runs once. */
void kit_after_test(void (*function)(void));

/*
 * The test owns the object: after it, what it owns is destroyed, the last first. What a failed test
 * owns is left alone. A destroy() that is called before is told by kit_disown().
 */
void kit_own(void *object, void (*destroy)(void *object));
void kit_disown(const void *object);

#define KIT_REGISTER(name_, ...)                                                                   \
    static void kit_run_##name_(void *self);                                                       \
    __attribute__((constructor)) static void kit_add_##name_(void)                                 \
    {                                                                                              \
        static struct kit_test test = {.name = #name_,                                             \
                                       .file = __FILE__,                                           \
                                       .line = __LINE__,                                           \
                                       .run = kit_run_##name_,                                     \
                                       __VA_ARGS__};                                               \
                                                                                                   \
        kit_add(&test);                                                                            \
    }

#define KIT_TEST_F(fixture_, name_, ...)                                                           \
    static void name_(kit_self_##fixture_ *self);                                                  \
    KIT_REGISTER(name_, .fixture = &kit_fixture_##fixture_, __VA_ARGS__)                           \
    static void kit_run_##name_(void *self)                                                        \
    {                                                                                              \
        name_(self);                                                                               \
    }                                                                                              \
    static void name_(__attribute__((unused)) kit_self_##fixture_ *self)

#define TEST(name_)                                                                                \
    static void name_(void);                                                                       \
    KIT_REGISTER(name_, .fixture = NULL)                                                           \
    static void kit_run_##name_(__attribute__((unused)) void *self)                                \
    {                                                                                              \
        name_();                                                                                   \
    }                                                                                              \
    static void name_(void)

#define TEST_F(fixture_, name_) KIT_TEST_F(fixture_, name_, .prepare = NULL)

/* TEST_F_WITH(pool, name, self->slots = 4): assignments, by commas, that the setup finds made. */
#define TEST_F_WITH(fixture_, name_, ...)                                                          \
    static void kit_prepare_##name_(void *fixture)                                                 \
    {                                                                                              \
        kit_self_##fixture_ *self = fixture;                                                       \
                                                                                                   \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    KIT_TEST_F(fixture_, name_, .prepare = kit_prepare_##name_)

/* A test of a fixture once more, named "NAME, LABEL", with other assignments before the setup. */
#define TEST_F_AGAIN(fixture_, name_, label_, ...)                                                 \
    static void kit_prepare_##name_(void *fixture)                                                 \
    {                                                                                              \
        kit_self_##fixture_ *self = fixture;                                                       \
                                                                                                   \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    __attribute__((constructor)) static void kit_add_again_##name_(void)                           \
    {                                                                                              \
        static struct kit_test test = {.name = #name_ ", " label_,                                 \
                                       .file = __FILE__,                                           \
                                       .line = __LINE__,                                           \
                                       .fixture = &kit_fixture_##fixture_,                         \
                                       .prepare = kit_prepare_##name_,                             \
                                       .run = kit_run_##name_};                                    \
                                                                                                   \
        kit_add(&test);                                                                            \
    }                                                                                              \
    extern const struct kit_fixture kit_fixture_##fixture_

#define FIXTURE(fixture_)                                                                          \
    typedef struct fixture_ kit_self_##fixture_;                                                   \
    extern const struct kit_fixture kit_fixture_##fixture_;                                        \
    struct fixture_

/* A fixture with the struct of another one, which its setup and teardown may call. */
#define FIXTURE_OF(fixture_, struct_)                                                              \
    typedef struct struct_ kit_self_##fixture_;                                                    \
    extern const struct kit_fixture kit_fixture_##fixture_

#define FIXTURE_SETUP(fixture_)                                                                    \
    static void kit_setup_##fixture_(kit_self_##fixture_ *self);                                   \
    static void kit_call_setup_##fixture_(void *self)                                              \
    {                                                                                              \
        kit_setup_##fixture_(self);                                                                \
    }                                                                                              \
    static void kit_setup_##fixture_(__attribute__((unused)) kit_self_##fixture_ *self)

/* After FIXTURE_SETUP. Where the setup fails, this does not run. */
#define FIXTURE_TEARDOWN(fixture_)                                                                 \
    static void kit_teardown_##fixture_(kit_self_##fixture_ *self);                                \
    static void kit_call_teardown_##fixture_(void *self)                                           \
    {                                                                                              \
        kit_teardown_##fixture_(self);                                                             \
    }                                                                                              \
    const struct kit_fixture kit_fixture_##fixture_ = {                                            \
        sizeof(kit_self_##fixture_), kit_call_setup_##fixture_, kit_call_teardown_##fixture_};     \
    static void kit_teardown_##fixture_(__attribute__((unused)) kit_self_##fixture_ *self)

/* In the place of a setup or a teardown that has nothing to do. */
static inline void kit_nothing(void *self)
{
    (void)self;
}

/* Functions in the place of both. */
#define FIXTURE_FROM(fixture_, setup_, teardown_)                                                  \
    static void kit_call_setup_##fixture_(void *self)                                              \
    {                                                                                              \
        setup_(self);                                                                              \
    }                                                                                              \
    static void kit_call_teardown_##fixture_(void *self)                                           \
    {                                                                                              \
        teardown_(self);                                                                           \
    }                                                                                              \
    const struct kit_fixture kit_fixture_##fixture_ = {                                            \
        sizeof(kit_self_##fixture_), kit_call_setup_##fixture_, kit_call_teardown_##fixture_}

#endif
