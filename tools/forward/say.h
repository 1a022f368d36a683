/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What mrd_forward says on standard error: one line for each thing, "mrd_forward: " before it.
 * Standard output carries what is forwarded. Of more than 50 lines a second the rest are only counted;
 * that does not hold for details.
 */
#ifndef FORWARD_SAY_H
#define FORWARD_SAY_H

enum forward_exit { FORWARD_OK = 0, FORWARD_FAILED = 1, FORWARD_USAGE = 2 };

/* Lines of detail, which say_detail() prints, are on with --verbose only. */
void say_all(void);
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
