/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    LONG_FIRST = 256, /* getopt_long() returns this and the index of the row */
    LIST_BYTES = 256,
    SHOWN_BYTES = 64, /* of an option with its dashes */
    WORD_BYTES = 32,  /* of an unknown option; a longer one is cut before it is compared */
    EDITS_MAX = 2,    /* of a word that is taken for a slip */
    MODES_NAMED = 2,  /* an option of more modes says none in --help */
    TEXT_COLUMN = 27,
    TEXT_BYTES = 512,
};

int option_fail(char *error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, OPTION_ERROR_BYTES, format, args);
    va_end(args);
    return -EINVAL;
}

/* ---------------------------------------------------------------------------------------- lists */

static void append(char *list, const char *name, const char *separator)
{
    size_t len = strlen(list);

    snprintf(list + len, LIST_BYTES - len, "%s%s", len ? separator : "", name);
}

/* Lists such as "a, b or c", where `last` is " or ". */
static void join_values(char *list, const struct option_row *row, const char *last)
{
    const char *const *values = option_values(row);

    list[0] = '\0';
    for (unsigned i = 0; values[i]; i++)
        append(list, values[i], values[i + 1] ? ", " : last);
}

static void join_modes(char *list, const struct option_table *table, uint32_t modes,
                       const char *last)
{
    const char *name;

    list[0] = '\0';
    for (unsigned i = 0; modes >> i && (name = table->mode_name(i)); i++) {
        if (modes >> i & 1)
            append(list, name, modes >> i >> 1 ? ", " : last);
    }
}

const char *const *option_values(const struct option_row *row)
{
    return row->list_values ? row->list_values() : row->values;
}

/* --------------------------------------------------------------------------------------- values */

/* strtold() alone takes "-1", " 7" and "inf", too. */
bool option_scan(const char **text, long double *value)
{
    char *end = NULL;

    if (!isdigit((unsigned char)**text) && **text != '.')
        return false;
    *value = strtold(*text, &end);
    bool found = end != *text;
    *text = end;
    return found;
}

/* What K, M or G stands for, if there is one. */
static unsigned scan_unit(const char **text)
{
    static const char units[] = "kmg";
    const char *unit = **text ? strchr(units, tolower((unsigned char)**text)) : NULL;

    if (!unit)
        return 1;
    ++*text;
    return 1u << (10 * (unit - units + 1));
}

uint64_t option_whole(const struct option_row *row, const void *from)
{
    const void *at = (const char *)from + row->offset;

    switch (row->bytes) {
    case sizeof(uint8_t):
        return *(const uint8_t *)at;
    case sizeof(uint16_t):
        return *(const uint16_t *)at;
    case sizeof(uint32_t):
        return *(const uint32_t *)at;
    default:
        return *(const uint64_t *)at;
    }
}

void option_set_whole(const struct option_row *row, void *to, uint64_t value)
{
    void *at = (char *)to + row->offset;

    switch (row->bytes) {
    case sizeof(uint8_t):
        *(uint8_t *)at = (uint8_t)value;
        return;
    case sizeof(uint16_t):
        *(uint16_t *)at = (uint16_t)value;
        return;
    case sizeof(uint32_t):
        *(uint32_t *)at = (uint32_t)value;
        return;
    default:
        *(uint64_t *)at = value;
    }
}

static bool take_whole(const struct option_row *row, const char *text, void *to)
{
    long double value;

    if (!option_scan(&text, &value))
        return false;
    if (row->type == OPTION_BYTES)
        value *= scan_unit(&text);
    if (*text || value != floorl(value) || value < row->low || value > row->high)
        return false;
    option_set_whole(row, to, (uint64_t)value);
    return true;
}

static bool take_reals(const struct option_row *row, const char *text, unsigned num, double *at)
{
    double values[2];
    long double value;

    for (unsigned i = 0; i < num; i++) {
        if (!option_scan(&text, &value) || *text != (i + 1 < num ? ',' : '\0'))
            return false;
        values[i] = (double)value; /* rounded as the bounds are */
        if (values[i] < row->low || values[i] > row->high)
            return false;
        text++;
    }
    if (num == 2 && values[0] > values[1])
        return false;
    memcpy(at, values, num * sizeof(values[0]));
    return true;
}

static bool take_share(const char *text, uint32_t *ppm)
{
    long double share;

    if (!option_scan(&text, &share))
        return false;
    if (strcmp(text, "%") == 0)
        share /= 100;
    else if (*text)
        return false;
    if (share >= 1 || lroundl(share * 1e6L) > 999999)
        return false;
    *ppm = (uint32_t)lroundl(share * 1e6L);
    return true;
}

static bool take_text(const struct option_row *row, const char *text, char *at)
{
    if (!*text || strlen(text) >= row->bytes)
        return false;
    strcpy(at, text);
    return true;
}

static bool take_choice(const struct option_row *row, const char *text, char *at)
{
    for (const char *const *value = option_values(row); *value; value++) {
        if (strcmp(*value, text) == 0)
            return take_text(row, text, at);
    }
    return false;
}

static void show_option(char *shown, const struct option_row *row)
{
    const char letter[] = {'-', row->letter, ',', ' ', '\0'};

    snprintf(shown, SHOWN_BYTES, "%s--%s", row->letter ? letter : "", row->name);
}

/* What a value should have been. */
static void describe(char *text, const struct option_row *row)
{
    switch (row->type) {
    case OPTION_TEXT:
        snprintf(text, LIST_BYTES, "%s of at most %zu bytes", row->argument, row->bytes - 1);
        return;
    case OPTION_CHOICE:
        join_values(text, row, " or ");
        return;
    case OPTION_COUNT:
    case OPTION_BYTES:
        snprintf(text, LIST_BYTES, "a whole number from %.0Lf to %.0Lf", row->low, row->high);
        return;
    case OPTION_REAL:
        snprintf(text, LIST_BYTES, "%s from %Lg to %.9Lg", row->argument, row->low, row->high);
        return;
    case OPTION_PAIR:
        snprintf(text, LIST_BYTES, "%s from %Lg to %.9Lg, the smaller first", row->argument,
                 row->low, row->high);
        return;
    case OPTION_SHARE:
        snprintf(text, LIST_BYTES, "a share from 0 to below 1, such as 0.01 or 1%%");
        return;
    default:
        snprintf(text, LIST_BYTES, "%s", row->expected);
    }
}

int option_take(const struct option_row *row, const char *text, void *to, char *error)
{
    void *at = (char *)to + row->offset;
    char shown[SHOWN_BYTES], expected[LIST_BYTES];
    bool good = true;
    int rc = 0;

    error[0] = '\0';
    switch (row->type) {
    case OPTION_FLAG:
        *(bool *)at = true;
        break;
    case OPTION_TEXT:
        good = take_text(row, text, at);
        break;
    case OPTION_CHOICE:
        good = take_choice(row, text, at);
        break;
    case OPTION_COUNT:
    case OPTION_BYTES:
        good = take_whole(row, text, to);
        break;
    case OPTION_REAL:
    case OPTION_PAIR:
        good = take_reals(row, text, row->type == OPTION_PAIR ? 2 : 1, at);
        break;
    case OPTION_SHARE:
        good = take_share(text, at);
        break;
    case OPTION_OTHER:
        rc = row->take(row, text, to, error);
        break;
    case OPTION_STOP:
        return (int)row->low;
    }
    if ((good && rc >= 0) || error[0])
        return rc;
    show_option(shown, row);
    describe(expected, row);
    return option_fail(error, "%s: expected %s, found '%s'", shown, expected, text);
}

void option_defaults(const struct option_table *table, void *to)
{
    char error[OPTION_ERROR_BYTES];

    for (const struct option_row *row = table->rows; row->name; row++) {
        int rc = row->value ? option_take(row, row->value, to, error) : 0;
        assert(rc == 0);
        (void)rc;
    }
}

/* ----------------------------------------------------------------------------- the command line */

/* Returns the edit distance of two words (Levenshtein). */
static unsigned edits(const char *a, const char *b)
{
    unsigned row[WORD_BYTES + 1]; /* distances from the begin of a to each prefix of b */
    unsigned len = (unsigned)strlen(b);

    for (unsigned j = 0; j <= len; j++)
        row[j] = j;
    for (unsigned i = 1; *a; a++, i++) {
        unsigned corner = row[0]; /* distance without the last letters */

        row[0] = i;
        for (unsigned j = 1; j <= len; j++) {
            unsigned best = corner + (*a != b[j - 1]);

            corner = row[j];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
        }
    }
    return row[len];
}

static int fail_unknown(const struct option_line *line, const char *word)
{
    const char *nearest = NULL;
    unsigned least = EDITS_MAX + 1;
    char name[WORD_BYTES];

    word += strspn(word, "-");
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
    if (line->table->explain && line->table->explain(name, 0, line->error))
        return -EINVAL;
    for (const struct option_row *row = line->table->rows; row->name; row++) {
        unsigned distance = edits(name, row->name);

        if (distance < least && distance < strlen(row->name)) {
            least = distance;
            nearest = row->name;
        }
    }
    return option_fail(line->error, "there is no option --%s%s%s%s", word,
                       nearest ? "; is it --" : "", nearest ? nearest : "", nearest ? "?" : "");
}

/* What getopt_long() does not take; `word` is where it stumbled. */
static int refuse(const struct option_line *line, int opt, const char *word)
{
    const struct option_table *table = line->table;

    if (opt == ':')
        return option_fail(line->error, "%s needs a value", word);
    if (optopt >= LONG_FIRST)
        return option_fail(line->error, "%.*s takes no value", (int)strcspn(word, "="), word);
    if (optopt == 0)
        return fail_unknown(line, word);
    if (table->explain && table->explain(NULL, optopt, line->error))
        return -EINVAL;
    return option_fail(line->error, "there is no option -%c", optopt);
}

/* The table as getopt_long() wants it. */
static void build_view(const struct option_table *table, struct option *longs, char *letters)
{
    int i = 0;

    *letters++ = ':'; /* tells a missing argument */
    for (const struct option_row *row = table->rows; row->name; row++, i++) {
        assert(i < OPTION_ROWS_MAX && strlen(row->name) <= WORD_BYTES);
        longs[i] = (struct option){row->name, row->argument ? required_argument : no_argument, NULL,
                                   LONG_FIRST + i};
        if (row->letter)
            *letters++ = row->letter;
        if (row->letter && row->argument)
            *letters++ = ':';
    }
    longs[i] = (struct option){0};
    *letters = '\0';
}

static int row_of(const struct option_table *table, int opt)
{
    int i = 0;

    if (opt >= LONG_FIRST)
        return opt - LONG_FIRST;
    while (table->rows[i].letter != opt)
        i++;
    return i;
}

int option_parse(struct option_line *line, int argc, char **argv)
{
    struct option longs[OPTION_ROWS_MAX + 1];
    char letters[2 * OPTION_ROWS_MAX + 2];
    int opt, rc;

    build_view(line->table, longs, letters);
    optind = 0; /* restart getopt, GNU style */
    opterr = 0;
    while ((opt = line->table->one_dash ? getopt_long_only(argc, argv, letters, longs, NULL)
                                        : getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (opt == '?' || opt == ':')
            return refuse(line, opt, argv[optind > 1 ? optind - 1 : 1]);
        int i = row_of(line->table, opt);
        line->given |= UINT64_C(1) << i;
        rc = option_take(&line->table->rows[i], optarg, line->to, line->error);
        if (rc)
            return rc;
    }
    line->num_words = argc - optind;
    line->words = argv + optind;
    return 0;
}

int option_check_mode(const struct option_line *line, unsigned mode)
{
    char shown[SHOWN_BYTES], modes[LIST_BYTES];

    for (unsigned i = 0; line->table->rows[i].name; i++) {
        const struct option_row *row = &line->table->rows[i];

        if (!(line->given >> i & 1) || !row->modes || row->modes >> mode & 1)
            continue;
        show_option(shown, row);
        join_modes(modes, line->table, row->modes, " and ");
        return option_fail(line->error, "%s is of %s, not of %s", shown, modes,
                           line->table->mode_name(mode));
    }
    return 0;
}

bool option_given(const struct option_line *line, const char *name)
{
    unsigned i = 0;

    while (strcmp(line->table->rows[i].name, name) != 0)
        i++;
    return line->given >> i & 1;
}

/* --------------------------------------------------------------------------------------- --help */

void option_print_words(FILE *out, int column, const char *text)
{
    int at = column;

    while (*text) {
        int len = (int)strcspn(text, " ");

        if (at > column && at + 1 + len > OPTION_HELP_COLUMNS) {
            fprintf(out, "\n%*s", column, "");
            at = column;
        }
        at += fprintf(out, "%s%.*s", at > column ? " " : "", len, text);
        text += len;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void print_row(FILE *out, const struct option_table *table, const struct option_row *row,
                      int mode)
{
    const char *value = table->shown_value ? table->shown_value(row, mode) : row->value;
    char shown[SHOWN_BYTES], left[2 * SHOWN_BYTES], text[TEXT_BYTES];
    char modes[LIST_BYTES] = "", values[LIST_BYTES] = "";

    if (mode < 0 && __builtin_popcount(row->modes) <= MODES_NAMED)
        join_modes(modes, table, row->modes, ", ");
    if (row->type == OPTION_CHOICE)
        join_values(values, row, ", ");
    snprintf(text, sizeof(text), "%s%s%s%s%s%s%s%s", modes, modes[0] ? ": " : "", row->help,
             values[0] && row->help[0] ? ": " : "", values, value ? " (" : "", value ? value : "",
             value ? ")" : "");
    show_option(shown, row);
    snprintf(left, sizeof(left), "  %s%s%s", shown, row->argument ? " " : "",
             row->argument ? row->argument : "");
    fprintf(out, "%-*s", TEXT_COLUMN, left);
    option_print_words(out, TEXT_COLUMN, text);
}

void option_help(FILE *out, const struct option_table *table, int mode)
{
    const char *heading = NULL;

    for (const struct option_row *row = table->rows; row->name; row++) {
        if (row->heading)
            heading = row->heading;
        if (mode >= 0 && row->modes && !(row->modes >> mode & 1))
            continue;
        if (heading)
            fprintf(out, "\n%s:\n", heading);
        heading = NULL;
        print_row(out, table, row, mode);
    }
}
