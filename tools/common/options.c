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

/* "a, b or c", where `last` is " or ": those of the names whose bits are set. */
static void join(char *list, const char *const *names, uint32_t bits, const char *last)
{
    size_t len = 0;

    list[0] = '\0';
    for (unsigned i = 0; names[i] && len < LIST_BYTES; i++) {
        const char *separator = names[i + 1] && bits >> i >> 1 ? ", " : last;

        if (bits >> i & 1)
            len += (size_t)snprintf(list + len, LIST_BYTES - len, "%s%s", len ? separator : "",
                                    names[i]);
    }
}

static const char *const *values_of(const struct option_row *row)
{
    return row->list_values ? row->list_values() : row->values;
}

static void show_name(char *shown, const struct option_row *row)
{
    const char letter[] = {'-', row->letter, ',', ' ', '\0'};

    snprintf(shown, SHOWN_BYTES, "%s--%s", row->letter ? letter : "", row->name);
}

/* --------------------------------------------------------------------------------------- values */

/* strtold() alone takes "-1", " 7" and "inf", too. */
bool option_scan(const char **text, long double *value)
{
    const char *begin = *text;
    char *end;

    if (!isdigit((unsigned char)*begin) && *begin != '.')
        return false;
    *value = strtold(begin, &end);
    *text = end;
    return end != begin;
}

/* What K, M or G stands for, if there is one. */
static unsigned scan_unit(const char **text)
{
    static const char units[] = "kmg";
    const char *unit = **text ? strchr(units, tolower((unsigned char)**text)) : NULL;

    *text += unit != NULL;
    return unit ? 1u << (10 * (unit - units + 1)) : 1;
}

uint64_t option_whole(const struct option_row *row, const void *from)
{
    const void *at = (const char *)from + row->offset;

    if (row->bytes == sizeof(uint8_t))
        return *(const uint8_t *)at;
    if (row->bytes == sizeof(uint16_t))
        return *(const uint16_t *)at;
    return row->bytes == sizeof(uint32_t) ? *(const uint32_t *)at : *(const uint64_t *)at;
}

void option_set_whole(const struct option_row *row, void *to, uint64_t value)
{
    void *at = (char *)to + row->offset;

    if (row->bytes == sizeof(uint8_t))
        *(uint8_t *)at = (uint8_t)value;
    else if (row->bytes == sizeof(uint16_t))
        *(uint16_t *)at = (uint16_t)value;
    else if (row->bytes == sizeof(uint32_t))
        *(uint32_t *)at = (uint32_t)value;
    else
        *(uint64_t *)at = value;
}

static bool take_whole(const struct option_value *v)
{
    const struct option_row *row = v->row;
    const char *text = v->text;
    long double value;

    if (!option_scan(&text, &value))
        return false;
    if (row->type == OPTION_BYTES)
        value *= scan_unit(&text);
    if (*text || value != floorl(value) || value < row->low || value > row->high)
        return false;
    option_set_whole(row, v->to, (uint64_t)value);
    return true;
}

static bool take_reals(const struct option_row *row, const char *text, unsigned num, double *at)
{
    double values[2] = {0};
    long double value;

    for (unsigned i = 0; i < num; i++, text++) {
        if (!option_scan(&text, &value) || *text != (i + 1 < num ? ',' : '\0'))
            return false;
        values[i] = (double)value; /* rounded as the bounds are */
        if (values[i] < row->low || values[i] > row->high)
            return false;
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
    if (*text == '%') {
        share /= 100;
        text++;
    }
    if (*text || share >= 0.9999995L)
        return false;
    *ppm = (uint32_t)lroundl(share * 1e6L);
    return true;
}

static bool take_text(const struct option_value *v, char *at)
{
    bool good = v->text[0] && strlen(v->text) < v->row->bytes;

    if (good)
        strcpy(at, v->text);
    return good;
}

static bool take_choice(const struct option_value *v, char *at)
{
    for (const char *const *value = values_of(v->row); *value; value++) {
        if (strcmp(*value, v->text) == 0)
            return take_text(v, at);
    }
    return false;
}

/* 0, -EINVAL, or above 0. */
static int take_value(const struct option_value *v)
{
    void *at = (char *)v->to + v->row->offset;

    switch (v->row->type) {
    case OPTION_FLAG:
        *(bool *)at = true;
        return 0;
    case OPTION_TEXT:
        return take_text(v, at) ? 0 : -EINVAL;
    case OPTION_CHOICE:
        return take_choice(v, at) ? 0 : -EINVAL;
    case OPTION_COUNT:
    case OPTION_BYTES:
        return take_whole(v) ? 0 : -EINVAL;
    case OPTION_REAL:
        return take_reals(v->row, v->text, 1, at) ? 0 : -EINVAL;
    case OPTION_PAIR:
        return take_reals(v->row, v->text, 2, at) ? 0 : -EINVAL;
    case OPTION_SHARE:
        return take_share(v->text, at) ? 0 : -EINVAL;
    case OPTION_OTHER:
        return v->row->take(v);
    case OPTION_STOP:
        break;
    }
    return (int)v->row->low;
}

/* What a value should have been. */
static void describe(char *text, const struct option_row *row)
{
    if (row->type == OPTION_CHOICE)
        join(text, values_of(row), UINT32_MAX, " or ");
    else if (row->type == OPTION_TEXT)
        snprintf(text, LIST_BYTES, "%s of at most %zu bytes", row->argument, row->bytes - 1);
    else if (row->type == OPTION_COUNT || row->type == OPTION_BYTES)
        snprintf(text, LIST_BYTES, "a whole number from %.0Lf to %.0Lf", row->low, row->high);
    else if (row->type == OPTION_REAL || row->type == OPTION_PAIR)
        snprintf(text, LIST_BYTES, "%s from %Lg to %.9Lg%s", row->argument, row->low, row->high,
                 row->type == OPTION_PAIR ? ", the smaller first" : "");
    else
        snprintf(text, LIST_BYTES, "%s",
                 row->expected ? row->expected : "a share below 1, such as 0.01 or 1%");
}

int option_take(const struct option_row *row, const char *text, void *to, char *error)
{
    const struct option_value value = {row, text, to, error};
    char shown[SHOWN_BYTES], expected[LIST_BYTES];

    error[0] = '\0';
    int rc = take_value(&value);
    if (rc >= 0 || error[0])
        return rc;
    show_name(shown, row);
    describe(expected, row);
    return option_fail(error, "%s: expected %s, found '%s'", shown, expected, text);
}

void option_defaults(const struct option_table *table, void *to)
{
    char error[OPTION_ERROR_BYTES];

    for (const struct option_row *row = table->rows; row->name; row++) {
        if (row->value)
            (void)option_take(row, row->value, to, error);
    }
}

/* ----------------------------------------------------------------------------- the command line */

/* Do the words differ by one letter, that is one too many, one too few or another one? */
static bool is_slip(const char *a, size_t a_len, const char *b)
{
    size_t b_len = strlen(b);

    for (; a_len && b_len && *a == *b; a++, b++)
        a_len--, b_len--;
    for (; a_len && b_len && a[a_len - 1] == b[b_len - 1]; a_len--)
        b_len--;
    return a_len <= 1 && b_len <= 1;
}

/* How many names begin so? Lists them: "--a, --b". */
static int list_names_with(const struct option_row *row, const char *begin, size_t len, char *list)
{
    size_t used = 0;
    int num = 0;

    for (; row->name; row++) {
        if (strncmp(row->name, begin, len) != 0)
            continue;
        if (used < LIST_BYTES)
            used += (size_t)snprintf(list + used, LIST_BYTES - used, "%s--%s", num ? ", " : "",
                                     row->name);
        num++;
    }
    return num;
}

static int fail_unknown(const struct option_line *line, const char *word)
{
    const struct option_row *row = line->table->rows;
    char list[LIST_BYTES];

    word += strspn(word, "-");
    if (line->table->explain && line->table->explain(word, 0, line->error))
        return -EINVAL;
    if (list_names_with(row, word, strcspn(word, "="), list) > 1)
        return option_fail(line->error, "--%s is short for several: %s", word, list);
    while (row->name && !is_slip(word, strcspn(word, "="), row->name))
        row++;
    return option_fail(line->error, "there is no option --%s%s%s%s", word,
                       row->name ? "; is it --" : "", row->name ? row->name : "",
                       row->name ? "?" : "");
}

/* What getopt_long() does not take; `word` is where it stumbled. */
static int refuse(const struct option_line *line, int opt, const char *word)
{
    if (opt == ':')
        return option_fail(line->error, "%s needs a value", word);
    if (optopt >= LONG_FIRST)
        return option_fail(line->error, "%.*s takes no value", (int)strcspn(word, "="), word);
    if (optopt == 0)
        return fail_unknown(line, word);
    if (line->table->explain && line->table->explain(NULL, optopt, line->error))
        return -EINVAL;
    return option_fail(line->error, "there is no option -%c", optopt);
}

/* The table as getopt_long() wants it. */
static void build_view(const struct option_table *table, struct option *longs, char *letters)
{
    *letters++ = ':'; /* tells a missing argument */
    for (int i = 0; table->rows[i].name; i++) {
        const struct option_row *row = &table->rows[i];

        assert(i < OPTION_ROWS_MAX);
        *longs++ = (struct option){row->name, row->argument ? required_argument : no_argument, NULL,
                                   LONG_FIRST + i};
        if (row->letter)
            letters += sprintf(letters, "%c%s", row->letter, row->argument ? ":" : "");
    }
    *longs = (struct option){0};
}

int option_parse(struct option_line *line, int argc, char **argv)
{
    const struct option_row *rows = line->table->rows;
    struct option longs[OPTION_ROWS_MAX + 1];
    char letters[2 * OPTION_ROWS_MAX + 2];
    int opt, rc;

    build_view(line->table, longs, letters);
    optind = 0; /* restart getopt, GNU style */
    opterr = 0;
    while ((opt = (line->table->one_dash ? getopt_long_only : getopt_long)(argc, argv, letters,
                                                                           longs, NULL)) != -1) {
        int i = opt - LONG_FIRST;

        if (opt == '?' || opt == ':')
            return refuse(line, opt, argv[optind > 1 ? optind - 1 : 1]);
        for (i = i < 0 ? 0 : i; opt < LONG_FIRST && rows[i].letter != opt; i++)
            ;
        line->given |= UINT64_C(1) << i;
        rc = option_take(&rows[i], optarg, line->to, line->error);
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
        show_name(shown, row);
        join(modes, line->table->modes, row->modes, " and ");
        return option_fail(line->error, "%s is of %s, not of %s", shown, modes,
                           line->table->modes[mode]);
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

    if (mode < 0 && row->modes && __builtin_popcount(row->modes) <= MODES_NAMED)
        join(modes, table->modes, row->modes, ", ");
    if (row->type == OPTION_CHOICE)
        join(values, values_of(row), UINT32_MAX, ", ");
    snprintf(text, sizeof(text), "%s%s%s%s%s%s%s%s", modes, modes[0] ? ": " : "", row->help,
             values[0] && row->help[0] ? ": " : "", values, value ? " (" : "", value ? value : "",
             value ? ")" : "");
    show_name(shown, row);
    snprintf(left, sizeof(left), "  %s %s", shown, row->argument ? row->argument : "");
    fprintf(out, "%-*s", TEXT_COLUMN, left);
    option_print_words(out, TEXT_COLUMN, text);
}

void option_help(FILE *out, const struct option_table *table, int mode)
{
    const char *heading = NULL;

    for (const struct option_row *row = table->rows; row->name; row++) {
        heading = row->heading ? row->heading : heading;
        if (mode >= 0 && row->modes && !(row->modes >> mode & 1))
            continue;
        if (heading)
            fprintf(out, "\n%s:\n", heading);
        heading = NULL;
        print_row(out, table, row, mode);
    }
}
