/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The explicit-state search that all models use.
 *
 * A model is a plain struct of state (no pointers, padding zeroed) and the functions of struct
 * search_model. search_run() visits every reachable state, breadth first, so that a counterexample
 * is a shortest one. It checks
 *
 *   safety:    bad() is NULL in every reachable state;
 *   liveness:  from every reachable state a state with goal() can be reached by SEARCH_STEPs alone.
 *              If every step that is possible again and again is taken at some time, the goal is
 *              reached once faults have stopped.
 *
 * Runs are deterministic. search_expect() is for tests.
 */
#ifndef MRD_TESTS_MODEL_SEARCH_H
#define MRD_TESTS_MODEL_SEARCH_H

#include <stdio.h>

#include "tests/kit/kit.h"

struct search;

enum search_kind {
    SEARCH_STEP,  /* the protocol, the network or time goes on */
    SEARCH_FAULT, /* may happen, but nothing may depend on it */
};

struct search_model {
    const char *name;
    size_t state_bytes;
    void (*init)(const void *rules, void *state); /* of zeroes */
    void (*next)(struct search *search, const void *rules,
                 const void *state); /* calls search_emit() for each successor */
    const char *(*bad)(const void *rules, const void *state); /* what is wrong, or NULL */
    bool (*goal)(const void *rules, const void *state);       /* NULL: no liveness */
    void (*show)(const void *rules, const void *state, FILE *to);
};

/* A model that calls its state `struct state`, and its functions as they are called above. */
#define SEARCH_MODEL(its_name)                                                                     \
    {                                                                                              \
        .name = its_name, .state_bytes = sizeof(struct state), .init = init, .next = next,         \
        .bad = bad, .goal = goal, .show = show                                                     \
    }

/* A successor, copied. The label is read only when a counterexample is printed. */
void search_emit(struct search *search, enum search_kind kind, const void *state, const char *label,
                 ...) __attribute__((format(printf, 4, 5)));

enum search_verdict {
    SEARCH_HOLDS,
    SEARCH_BAD,   /* a state is bad */
    SEARCH_STUCK, /* a state cannot reach the goal */
    SEARCH_LIMIT, /* too many states: nothing is known of the rest */
};

struct search_result {
    enum search_verdict verdict;
    const char *why; /* SEARCH_BAD: of bad() */
    size_t states, transitions, depth;
    size_t steps; /* of the counterexample */
};

struct search_result search_run(const struct search_model *model, const void *rules, FILE *to);

/*
 * Runs the model and asserts the verdict. `why` is what a bad state must say, or NULL. An
 * unexpected counterexample is printed; expected ones too if MRD_MODEL_TRACE is set in the
 * environment.
 */
void search_expect(const struct search_model *model, const void *rules, const char *variant,
                   enum search_verdict verdict, const char *why);

#endif
