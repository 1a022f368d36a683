/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/sim/fail.h"

enum { FOUND_BYTES = 48 }; /* of a word, in a message */

int simx_lines_failed(const struct simx_lines *lines, int rc)
{
    return simx_fail(rc, "%s: %s", lines->path, strerror(-rc));
}

/*
 * What is between the quotes of a message: the file may hold anything, a terminal should not see
 * it.
 */
static void printable(char *out, const char *text)
{
    size_t len = strlen(text);
    bool cut = len >= FOUND_BYTES;

    if (cut)
        len = FOUND_BYTES - 4;
    for (size_t i = 0; i < len; i++)
        out[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
    strcpy(out + len, cut ? "..." : "");
}

int simx_lines_expected_at(const struct simx_lines *lines, unsigned line, const char *found,
                           const char *what, ...)
{
    char expected[256];
    char text[FOUND_BYTES];
    va_list args;

    va_start(args, what);
    vsnprintf(expected, sizeof(expected), what, args);
    va_end(args);
    printable(text, found);
    return simx_fail(-EINVAL, "%s:%u: expected %s, found '%s'", lines->path, line, expected, text);
}

/* Cuts the line into words. */
static int split(struct simx_lines *lines, char *text, size_t len)
{
    static const char blanks[] = " \t\v\f\r", mark[] = "\xef\xbb\xbf";

    lines->num_words = 0;
    if (strlen(text) >= SIMX_LINE_BYTES)
        return simx_lines_expected(lines, text, "a line below %d characters", SIMX_LINE_BYTES);
    if (strlen(text) < len)
        return simx_lines_expected(lines, text, "text without zero bytes");
    if (lines->line == 1 && strncmp(text, mark, strlen(mark)) == 0)
        text += strlen(mark);
    while (text && text[strspn(text, blanks)] && text[strspn(text, blanks)] != '#') {
        text += strspn(text, blanks);
        if (lines->num_words == SIMX_WORDS_MAX)
            return simx_lines_expected(lines, text, "at most %d words", SIMX_WORDS_MAX);
        lines->word[lines->num_words++] = strsep(&text, blanks);
    }
    return 0;
}

/*
 * Takes a line, without its end, into SIMX_LINE_BYTES + 1 bytes; the rest of one that is too long
 * stays, as it may never end. Returns its length, or -1: there is none, or an error.
 */
static int take_line(char *text, FILE *file)
{
    int len = 0, c = 0;

    while (len < SIMX_LINE_BYTES && (c = getc(file)) != EOF && c != '\n')
        text[len++] = (char)c;
    text[len] = '\0';
    return ferror(file) || (c == EOF && len == 0) ? -1 : len;
}

int simx_lines_read(struct simx_lines *lines, const char *path,
                    int (*line)(struct simx_lines *lines, void *arg), void *arg)
{
    FILE *file = fopen(path, "re");
    char text[SIMX_LINE_BYTES + 1];
    int rc = 0;

    *lines = (struct simx_lines){.path = path};
    if (!file)
        return simx_lines_failed(lines, -errno);
    while (rc == 0) {
        int len = take_line(text, file);

        lines->line++;
        if (len < 0)
            break;
        rc = split(lines, text, (size_t)len);
        if (rc == 0 && lines->num_words > 0)
            rc = line(lines, arg);
    }
    if (rc == 0 && ferror(file))
        rc = simx_lines_failed(lines, -errno);
    lines->num_words = 0;
    fclose(file);
    return rc;
}

const char *simx_lines_word(const struct simx_lines *lines, unsigned word)
{
    return word < lines->num_words ? lines->word[word] : SIMX_END_OF_LINE;
}

bool simx_parse_u64(const char *text, const char *end, uint64_t *value)
{
    uint64_t sum = 0;

    if (text == end)
        return false;
    for (; text < end; text++) {
        unsigned digit = (unsigned)(*text - '0');

        if (digit > 9 || sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return true;
}

int simx_lines_u64(const struct simx_lines *lines, unsigned word, const char *what, uint64_t low,
                   uint64_t high, uint64_t *value)
{
    const char *text = simx_lines_word(lines, word);
    uint64_t number;

    if (!simx_parse_u64(text, text + strlen(text), &number) || number < low || number > high)
        return simx_lines_expected(lines, text, "%s of %llu .. %llu", what, (unsigned long long)low,
                                   (unsigned long long)high);
    *value = number;
    return 0;
}

void simx_lines_cut_fraction(struct simx_lines *lines, unsigned word)
{
    char *point = word < lines->num_words ? strchr(lines->word[word], '.') : NULL;

    if (point && point > lines->word[word] && point[1] && !point[1 + strspn(point + 1, "0")])
        *point = '\0';
}

int simx_lines_end(const struct simx_lines *lines, unsigned count)
{
    if (lines->num_words > count)
        return simx_lines_expected(lines, lines->word[count], "the end of the line");
    return 0;
}
