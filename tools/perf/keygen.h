/* SPDX-License-Identifier: BSD-2-Clause */
/* "mrd_perf keygen": makes the key files of mrd_keys(5), and puts new keys into them. */
#ifndef MRD_PERF_KEYGEN_H
#define MRD_PERF_KEYGEN_H

struct perf_options;

/* As o->keygen says. The exit code. */
int perf_keygen_run(const struct perf_options *o);

#endif
