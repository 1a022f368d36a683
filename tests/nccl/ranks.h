/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks: processes that play parts of one job, forked from a test before anything is initialised.
 *
 * ranks_run() in the test; each rank runs the function and may talk to any other one. The test fails
 * with a rank's own sentence, also if the rank ends by a signal or takes too long.
 */
#ifndef MRD_TESTS_NCCL_RANKS_H
#define MRD_TESTS_NCCL_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANKS_MAX = 8, RANKS_SECONDS = 60 /* a rank that hangs is ended */ };

void ranks_run(int n, void (*run)(int rank, const void *argument), const void *argument);

/* The rest is for ranks. */

int ranks_count(void);
/* Bytes to another rank, in order. Where that is gone, this one ends, too. */
void rank_tell(int to, const void *data, size_t bytes);
void rank_hear(int from, void *data, size_t bytes);
/* Returns once the other rank is here, too. */
void rank_meet(int other);
void rank_meet_all(void);
/* Returns when the process of the other rank, which told nothing any more, has ended. */
void rank_await_death(int other);
/* This rank is to be killed, or stopped until the others have ended: it is no failure. */
void rank_kill_myself(int signal);

/* Ends the rank and fails the test. */
void rank_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));
#define NEED(condition_) ((condition_) ? (void)0 : rank_fail(__FILE__, __LINE__, "%s", #condition_))

uint64_t rank_now_ns(void);
#endif
