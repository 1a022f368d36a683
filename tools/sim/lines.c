/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "tools/sim/fail.h"

enum { FOUND_BYTES = 48 }; /* of a word, in a message */

int simx_lines_failed(const struct simx_lines *lines, int rc)
{
    return simx_fail(rc, "%s: %s", lines->path, strerror(-rc));
}

int simx_lines_open(struct simx_lines *lines, const char *path)
{
    *lines = (struct simx_lines){.path = path};
    lines->file = fopen(path, "re");
    return lines->file ? 0 : simx_lines_failed(lines, -errno);
}

void simx_lines_close(struct simx_lines *lines)
{
    if (lines->file)
        fclose(lines->file);
    lines->file = NULL;
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

int simx_lines_expected(const struct simx_lines *lines, unsigned line, const char *found,
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

/* 1: a line, perhaps empty; 0: end of file. */
static int read_line(struct simx_lines *lines)
{
    size_t len = 0;
    int c;

    lines->line++;
    errno = 0;
    while ((c = getc(lines->file)) != EOF && c != '\n') {
        lines->text[len] = '\0';
        if (c == '\0')
            return simx_lines_expected(lines, lines->line, lines->text, "text without zero bytes");
        if (len + 1 == sizeof(lines->text))
            return simx_lines_expected(lines, lines->line, lines->text,
                                       "a line below %d characters", SIMX_LINE_BYTES);
        lines->text[len++] = (char)c;
    }
    lines->text[len] = '\0';
    if (ferror(lines->file))
        return simx_lines_failed(lines, errno ? -errno : -EIO);
    return c != EOF || len > 0;
}

static int split(struct simx_lines *lines)
{
    char *at = lines->text;

    lines->num_words = 0;
    for (;;) {
        while (isspace((unsigned char)*at))
            at++;
        if (*at == '\0' || *at == '#')
            return 0;
        if (lines->num_words == SIMX_WORDS_MAX)
            return simx_lines_expected(lines, lines->line, at, "at most %d words", SIMX_WORDS_MAX);
        lines->word[lines->num_words++] = at;
        while (*at && !isspace((unsigned char)*at))
            at++;
        if (*at)
            *at++ = '\0';
    }
}

int simx_lines_next(struct simx_lines *lines)
{
    int rc;

    do {
        rc = read_line(lines);
        if (rc <= 0)
            return rc;
        rc = split(lines);
        if (rc)
            return rc;
    } while (lines->num_words == 0);
    return 1;
}

const char *simx_lines_word(const struct simx_lines *lines, unsigned word)
{
    return word < lines->num_words ? lines->word[word] : "end of line";
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
        return simx_lines_expected(lines, lines->line, text, "%s of %llu .. %llu", what,
                                   (unsigned long long)low, (unsigned long long)high);
    *value = number;
    return 0;
}

int simx_lines_end(const struct simx_lines *lines, unsigned count)
{
    if (lines->num_words > count)
        return simx_lines_expected(lines, lines->line, lines->word[count], "the end of the line");
    return 0;
}
