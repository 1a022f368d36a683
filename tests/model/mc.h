/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small explicit-state model checker.
 *
 * A model is a plain struct of state (no pointers, padding zeroed) and the functions of struct mc_model. mc_run()
 * visits every reachable state, breadth first, so that a counterexample is a shortest one. It checks
 *
 *   safety:    bad() is NULL in every reachable state;
 *   liveness:  from every reachable state a state with goal() can be reached by MC_STEPs alone. If every step that is
 *              possible again and again is taken at some time, the goal is reached once faults have stopped.
 *
 * Runs are deterministic. mc_expect() is for tests.
 */
#ifndef MRD_TESTS_MODEL_MC_H
#define MRD_TESTS_MODEL_MC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct mc;

enum mc_kind {
    MC_STEP,  /* the protocol, the network or time goes on */
    MC_FAULT, /* may happen, but nothing may depend on it */
};

struct mc_model {
    const char *name;
    size_t state_bytes;
    void (*init)(const void *rules, void *state); /* of zeroes */
    void (*next)(struct mc *mc, const void *rules,
                 const void *state); /* calls mc_emit() for each successor */
    const char *(*bad)(const void *rules, const void *state); /* what is wrong, or NULL */
    bool (*goal)(const void *rules, const void *state);       /* NULL: no liveness */
    void (*show)(const void *rules, const void *state, FILE *to);
};

/* A successor, copied. The label is read only when a counterexample is printed. */
void mc_emit(struct mc *mc, enum mc_kind kind, const void *state, const char *label, ...)
    __attribute__((format(printf, 4, 5)));

enum mc_verdict {
    MC_HOLDS,
    MC_BAD,   /* a state is bad */
    MC_STUCK, /* a state cannot reach the goal */
    MC_LIMIT, /* too many states: nothing is known of the rest */
};

struct mc_result {
    enum mc_verdict verdict;
    const char *why; /* MC_BAD: of bad() */
    size_t states, transitions, depth;
    size_t steps; /* of the counterexample */
};

struct mc_result mc_run(const struct mc_model *model, const void *rules, FILE *to);

/*
 * Runs the model and asserts the verdict. `why` is what a bad state must say, or NULL. An unexpected counterexample is
 * printed; expected ones too if MRD_MODEL_TRACE is set in the environment.
 */
void mc_expect(const struct mc_model *model, const void *rules, const char *variant,
               enum mc_verdict verdict, const char *why);

#endif
