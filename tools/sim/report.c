/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/report.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 128 };

/* Returns the error of the stream, if any. */
static int flush(FILE *out)
{
    if (fflush(out) == EOF)
        return errno ? -errno : -EIO;
    return ferror(out) ? -EIO : 0;
}

int simx_report_json(FILE *out, struct json_object *run)
{
    const char *text = json_object_to_json_string_ext(run, JSON_C_TO_STRING_PLAIN |
                                                               JSON_C_TO_STRING_NOSLASHESCAPE);

    if (!text)
        return -ENOMEM;
    fprintf(out, "%s\n", text);
    return flush(out);
}

/* Add to `flat` what `object` holds, by paths. An object of JSON keeps the order of its members. */
static void flatten(struct json_object *flat, const char *prefix, struct json_object *object)
{
    json_object_object_foreach(object, key, value)
    {
        char *path;
        if (json_object_is_type(value, json_type_array))
            continue;
        if (asprintf(&path, "%s%s%s", prefix, *prefix ? "." : "", key) < 0)
            continue;
        if (json_object_is_type(value, json_type_object))
            flatten(flat, path, value);
        else
            json_object_object_add(flat, path, json_object_get(value));
        free(path);
    }
}

static void csv_cell(FILE *out, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void csv_line(FILE *out, struct json_object *paths, struct json_object *flat)
{
    const char *separator = "";

    json_object_object_foreach(paths, path, unused)
    {
        struct json_object *value = flat ? json_object_object_get(flat, path) : NULL;
        (void)unused;
        fputs(separator, out);
        separator = ",";
        if (!flat)
            csv_cell(out, path);
        else if (value)
            csv_cell(out, json_object_get_string(value));
    }
    fputc('\n', out);
}

int simx_report_csv(FILE *out, struct json_object *const *runs, size_t num_runs)
{
    struct json_object *paths = json_object_new_object(), *rows = json_object_new_array();

    for (size_t i = 0; i < num_runs; i++) {
        struct json_object *row = json_object_new_object();
        flatten(row, "", runs[i]);
        json_object_array_add(rows, row);
        json_object_object_foreach(row, path, unused)
        {
            (void)unused;
            json_object_object_add(paths, path, NULL); /* an existing key keeps its place */
        }
    }
    csv_line(out, paths, NULL);
    for (size_t i = 0; i < num_runs; i++)
        csv_line(out, paths, json_object_array_get_idx(rows, i));
    json_object_put(rows);
    json_object_put(paths);
    return flush(out);
}

/* ------------------------------------------------------------------------------------ the table */

/* Formats a cell: the value of a run, or the head for NULL. True: it is a number. */
static bool format_cell(char *text, const struct simx_column *column, struct json_object *run)
{
    struct json_object *value = json_mean_of(run, column->key);
    double number = json_mean(run, column->key);
    bool is_text = json_object_is_type(value, json_type_string) ||
                   json_object_is_type(value, json_type_boolean);

    if (!run && column->unit)
        snprintf(text, CELL_BYTES, "%s [%s]", column->title, column->unit);
    else if (!run)
        snprintf(text, CELL_BYTES, "%s", column->title);
    else if (isfinite(number))
        snprintf(text, CELL_BYTES, "%.*f", column->decimals, number);
    else
        snprintf(text, CELL_BYTES, "%s", is_text ? json_object_get_string(value) : "-");
    return run && isfinite(number);
}

/* Characters of UTF-8, each taken as one column wide. */
static int width_of(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* The layout of a column: its head and dashes are aligned like its values. */
struct layout {
    int width;
    bool left; /* some value is text */
};

static struct layout layout_of(const struct simx_column *column, struct json_object *const *runs,
                               size_t num_runs)
{
    struct layout layout = {0};
    char text[CELL_BYTES];

    for (size_t line = 0; line <= num_runs; line++) {
        bool is_number = format_cell(text, column, line ? runs[line - 1] : NULL);
        int width = width_of(text);

        layout.width = width > layout.width ? width : layout.width;
        layout.left |= line > 0 && !is_number && strcmp(text, "-") != 0;
    }
    return layout;
}

int simx_report_table(FILE *out, const struct simx_column *columns, struct json_object *const *runs,
                      size_t num_runs)
{
    char text[CELL_BYTES];

    for (size_t line = 0; line <= num_runs; line++) {
        for (const struct simx_column *column = columns; column->key; column++) {
            struct layout layout = layout_of(column, runs, num_runs);
            bool is_number = format_cell(text, column, line ? runs[line - 1] : NULL);
            bool is_left = layout.left && !is_number, is_last = !column[1].key;
            int pad = layout.width - width_of(text);

            fprintf(out, "%*s%s%*s%s", is_left ? 0 : pad, "", text, is_left && !is_last ? pad : 0,
                    "", is_last ? "\n" : "  ");
        }
    }
    return flush(out);
}
