/* SPDX-License-Identifier: BSD-2-Clause */
/* What the provider says in libfabric's log, which is stderr. Run with FI_LOG_LEVEL=info. */
#ifndef MRD_TESTS_OFI_LOG_H
#define MRD_TESTS_OFI_LOG_H

/* From now on stderr is kept, until log_says(). */
void log_keep(void);
/* Fails the test unless a line of the log has that text. */
void log_says(const char *text);

#endif
