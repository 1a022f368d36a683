/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --threads: several threads of each end run the test, on one context.
 *
 * Each thread has a perf_run of its own, and with it a queue pair, a completion queue, memory and
 * counts. The main thread is one of them. It alone speaks on the control connection: the others
 * learn from it what came there, by their run's thread_ops. perf_threads_run() adds up what all
 * counted in the main thread's run. With one thread all of these do nothing but that.
 */
#ifndef MRD_PERF_THREADS_H
#define MRD_PERF_THREADS_H

#include <json-c/json.h>

#include "tools/perf/run.h"

/* Open the transport for the other threads, and close it. 0 or -errno with run->error. */
int perf_threads_open(struct perf_run *run);
void perf_threads_close(struct perf_run *run);
/* Tell how they are reached; connect them with those of the other end. 0 or -errno likewise. */
void perf_threads_get_info(struct perf_run *run, struct json_object *info);
int perf_threads_set_peer(struct perf_run *run, struct json_object *info);

/* Run the test in all threads until all have ended. 0 or -errno with run->error. */
int perf_threads_run(struct perf_run *run, int (*test)(struct perf_run *run));

/* Put what each thread sent, or received, into a message. */
void perf_threads_put_sent(const struct perf_run *run, struct json_object *message);
void perf_threads_put_received(const struct perf_run *run, struct json_object *message);
/* Add threads[]: what each sent and, if that is known, what of it arrived. */
void perf_threads_report(const struct perf_run *run, struct json_object *report);

#endif
