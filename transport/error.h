/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling thread's last sentence, and messages to the application's log.
 *
 * A failing call says mrd_error_set() (backend.h) or mrd_error_copy() once, then returns its
 * number. mrd_log() (backend.h) goes where mrd_set_log() said, else where the environment said
 * at open.
 */
#ifndef MRD_TRANSPORT_ERROR_H
#define MRD_TRANSPORT_ERROR_H

#include "transport/backend.h"

/*
 * Like mrd_error_set("%s") without formatting: cheap enough for a full send queue. NULL or
 * "": strerror(-error).
 */
void mrd_error_copy(const char *sentence, int error);

/* "error", "warn", "info" or "debug" -> level; -EINVAL otherwise. */
int mrd_log_parse(const char *text, enum mrd_log_level *level);

/* Log to stderr up to `level`, unless mrd_set_log() has said otherwise. */
void mrd_log_default(enum mrd_log_level level);

#endif
