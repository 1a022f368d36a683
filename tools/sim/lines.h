/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text files of one record a line: words, numbers, and errors that name file and line.
 *
 * simx_lines_read() calls a function for each line. Its words are in word[] then, and
 * simx_lines_expected() says what is wrong with one. Blank lines are skipped, as is a byte order
 * mark before the first one, and a word that begins with # ends its line. Every function that fails sets the sentence of mrd_last_error().
 */
#ifndef MRD_SIM_LINES_H
#define MRD_SIM_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIMX_LINE_BYTES = 1024, SIMX_WORDS_MAX = 20 };

#define SIMX_END_OF_FILE "end of file"
#define SIMX_END_OF_LINE "end of line"

struct simx_lines {
    const char *path; /* the caller's, for messages */
    unsigned line;    /* number of the current line, from 1; past the end: one more than the last */
    char *word[SIMX_WORDS_MAX];
    unsigned num_words;
};

/*
 * Calls line() for each line with words, until it returns other than 0. Returns what it did, or 0;
 * -EINVAL: not text, or too long; -errno: the file cannot be read. After that `lines` still serves
 * for messages.
 */
int simx_lines_read(struct simx_lines *lines, const char *path,
                    int (*line)(struct simx_lines *lines, void *arg), void *arg);

/* The word, or SIMX_END_OF_LINE past the last one. */
const char *simx_lines_word(const struct simx_lines *lines, unsigned word);

/*
 * Word `word` as a number of low .. high. 0, or -EINVAL with a sentence that calls the number
 * `what`.
 */
int simx_lines_u64(const struct simx_lines *lines, unsigned word, const char *what, uint64_t low,
                   uint64_t high, uint64_t *value);
/* Makes "5" of "5.000", which is how some programs print it. Other words stay as they are. */
void simx_lines_cut_fraction(struct simx_lines *lines, unsigned word);
/* -EINVAL with a sentence unless the current line has `count` words. */
int simx_lines_end(const struct simx_lines *lines, unsigned count);

/* FILE:LINE: expected WHAT, found 'TEXT'. Returns -EINVAL. */
int simx_lines_expected_at(const struct simx_lines *lines, unsigned line, const char *found,
                           const char *what, ...) __attribute__((format(printf, 4, 5)));
/* The same of the current line. */
#define simx_lines_expected(lines, ...) simx_lines_expected_at(lines, (lines)->line, __VA_ARGS__)
/* FILE: the sentence of -rc. Returns rc. */
int simx_lines_failed(const struct simx_lines *lines, int rc);

/* The digits of text .. end - 1. False: none, something else among them, or more than 64 bits. */
bool simx_parse_u64(const char *text, const char *end, uint64_t *value);

#endif
