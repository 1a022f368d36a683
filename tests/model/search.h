/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The explicit-state search that all models use.
 *
 * A model is its own struct rules, struct state and search_model. The search visits every reachable
 * state, breadth first, so that a counterexample is a shortest one. It checks
 *
 *   safety:    bad() is NULL in every reachable state;
 *   liveness:  from every reachable state a state with goal() can be reached by search_step()s alone.
 *              If every step that is possible again and again is taken at some time, the goal is
 *              reached once faults have stopped.
 *
 * Runs are deterministic.
 */
#ifndef MRD_TESTS_MODEL_SEARCH_H
#define MRD_TESTS_MODEL_SEARCH_H

#include <stdio.h>

#include "tests/kit/kit.h"

struct rules; /* of the model: what it varies in */
struct state; /* of the model: plain, no pointers, padding zeroed */

/* Each program has one: search_model. */
struct search_model {
    const char *name;
    size_t state_bytes;
    void (*init)(const struct rules *r, struct state *s); /* of zeroes; NULL: it is all zeroes */
    /* Calls search_step() or search_fault() for each successor. */
    void (*next)(const struct rules *r, const struct state *s);
    const char *(*bad)(const struct rules *r, const struct state *s); /* NULL: nothing is wrong */
    bool (*goal)(const struct rules *r, const struct state *s);
};

extern const struct search_model search_model;

/* A model that calls its state `struct state`, and its functions as they are called above. */
#define SEARCH_MODEL(its_name)                                                                     \
    {                                                                                              \
        .name = its_name, .state_bytes = sizeof(struct state), .init = init, .next = next,         \
        .bad = bad, .goal = goal                                                                   \
    }

/*
 * A successor, which is copied: the protocol, the network or time goes on; or what may happen, but
 * nothing may depend on it. The label is read only when a counterexample is printed.
 */
void search_step(const struct state *state, const char *label, ...)
    __attribute__((format(printf, 2, 3)));
void search_fault(const struct state *state, const char *label, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Each visits all states under some rules, and asserts what comes of it: nothing is wrong; a state
 * is bad, for this reason (NULL: for any); a state cannot reach the goal. An unexpected
 * counterexample is printed; expected ones too if MRD_MODEL_TRACE is set in the environment.
 */
void search_holds(const struct rules *r, const char *variant);
void search_bad(const struct rules *r, const char *variant, const char *why);
void search_stuck(const struct rules *r, const char *variant);

#endif
