/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sentence of the calling thread's last error, and messages to the application's log.
 *
 * A call that fails sets one sentence, by mrd_error_set() (backend.h) or mrd_error_copy(), and then
 * returns its error number. mrd_log() (backend.h) writes where mrd_set_log() directed it, else
 * where MRD_LOG did when a context was opened.
 */
#ifndef MRD_TRANSPORT_ERROR_H
#define MRD_TRANSPORT_ERROR_H

#include "transport/backend.h"

enum { MRD_SENTENCE_BYTES = 512 }; /* of mrd_last_error(), at most */

/*
 * Like mrd_error_set("%s", sentence) without formatting: cheap enough for posts to a full send
 * queue. If `sentence` is NULL or empty, takes strerror(-error).
 */
void mrd_error_copy(const char *sentence, int error);

/* Parses "error", "warn", "info" or "debug". 0; -EINVAL: none of these. */
int mrd_log_parse(const char *text, enum mrd_log_level *level);

/* Logs to stderr up to `level`, unless the application called mrd_set_log(). */
void mrd_log_default(enum mrd_log_level level);

#endif
