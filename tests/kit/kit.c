/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/kit/kit.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AFTER_MAX = 8 };

static struct kit_test *first;

struct owned {
    void *object;
    void (*destroy)(void *object);
    struct owned *next;
};

/* Of the test that runs. */
static struct {
    void *self;
    bool is_set_up;
    void (*after[AFTER_MAX])(void);
    unsigned num_after;
    struct owned *owned; /* the last one first */
} current;

__attribute__((weak)) int kit_before_all(void)
{
    return 0;
}

__attribute__((weak)) void kit_before_each(void)
{
}

__attribute__((weak)) int kit_after_all(void)
{
    return 0;
}

/* Behind the tests of its file that stand above it: the order of constructors is not told. */
void kit_add(struct kit_test *test)
{
    struct kit_test **at = &first;

    while (*at && strcmp((*at)->file, test->file) != 0)
        at = &(*at)->next;
    while (*at && strcmp((*at)->file, test->file) == 0 && (*at)->line < test->line)
        at = &(*at)->next;
    test->next = *at;
    *at = test;
}

void kit_after_test(void (*function)(void))
{
    for (unsigned i = 0; i < current.num_after; i++)
        if (current.after[i] == function)
            return;
    assert_true(current.num_after < AFTER_MAX);
    current.after[current.num_after++] = function;
}

void kit_own(void *object, void (*destroy)(void *object))
{
    struct owned *o = malloc(sizeof(*o));

    assert_non_null(o);
    *o = (struct owned){object, destroy, current.owned};
    current.owned = o;
}

void kit_disown(const void *object)
{
    for (struct owned **at = &current.owned; *at; at = &(*at)->next) {
        if ((*at)->object == object) {
            struct owned *o = *at;

            *at = o->next;
            free(o);
            return;
        }
    }
}

static void destroy_owned(void)
{
    while (current.owned) {
        struct owned o = *current.owned;

        kit_disown(o.object);
        o.destroy(o.object);
    }
}

static void finish(void)
{
    while (current.owned)
        kit_disown(current.owned->object);
    while (current.num_after > 0)
        current.after[--current.num_after]();
    free(current.self);
    current.self = NULL;
}

static void run(void **state)
{
    const struct kit_test *test = *state;
    const struct kit_fixture *fixture = test->fixture;

    finish();  /* what a teardown that failed has left */
    errno = 0; /* what a test finds is of its own calls */
    kit_before_each();
    if (fixture) {
        current.self = calloc(1, fixture->bytes);
        assert_non_null(current.self);
        if (test->prepare)
            test->prepare(current.self);
        fixture->setup(current.self);
        current.is_set_up = true;
    }
    test->run(current.self);
    destroy_owned();
}

static int teardown(void **state)
{
    const struct kit_test *test = *state;
    bool was_set_up = current.is_set_up;

    current.is_set_up = false;
    if (was_set_up)
        test->fixture->teardown(current.self);
    finish();
    return 0;
}

static bool is_chosen(const struct kit_test *test, char *const *patterns, int num)
{
    bool chosen = num == 0;

    for (int i = 0; i < num; i++)
        chosen |= fnmatch(patterns[i], test->name, 0) == 0;
    return chosen;
}

static int run_all(const struct CMUnitTest *tests, size_t num)
{
    int status = kit_before_all();

    if (status == 0) {
        status = _cmocka_run_group_tests("tests", tests, num, NULL, NULL);
        finish();
        status += kit_after_all();
    }
    return status;
}

static void list(const struct CMUnitTest *tests, size_t num)
{
    for (size_t i = 0; i < num; i++)
        puts(tests[i].name);
}

int main(int argc, char **argv)
{
    bool lists = argc > 1 && strcmp(argv[1], "--list") == 0;
    size_t num = 0;
    int status = 0;

    argc -= 1 + lists;
    argv += 1 + lists;
    for (struct kit_test *test = first; test; test = test->next)
        num++;
    struct CMUnitTest *tests = calloc(num + 1, sizeof(*tests));
    if (!tests)
        return EXIT_FAILURE;
    num = 0;
    for (struct kit_test *test = first; test; test = test->next)
        if (is_chosen(test, argv, argc))
            tests[num++] = (struct CMUnitTest){test->name, run, NULL, teardown, test};
    if (num == 0) {
        fprintf(stderr, "no test matches; names: --list; patterns are those of a shell\n");
        status = EXIT_FAILURE;
    } else if (lists) {
        list(tests, num);
    } else {
        status = run_all(tests, num);
    }
    free(tests);
    return status;
}
