/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/report.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct json_object *simx_json_number(double value)
{
    const double exact = 9007199254740992.0; /* 2^53 */
    char text[32];

    if (!isfinite(value))
        return NULL;
    value += 0.0; /* no negative zero */
    bool whole = fabs(value) <= exact && floor(value) == value;
    snprintf(text, sizeof(text), whole ? "%.0f" : "%.9g", value);
    return json_object_new_double_s(strtod(text, NULL), text);
}

void simx_json_add_double(struct json_object *object, const char *key, double value)
{
    json_object_object_add(object, key, simx_json_number(value));
}

void simx_json_add_u64(struct json_object *object, const char *key, uint64_t value)
{
    json_object_object_add(object, key, json_object_new_uint64(value));
}

void simx_json_add_string(struct json_object *object, const char *key, const char *value)
{
    json_object_object_add(object, key, value ? json_object_new_string(value) : NULL);
}

static struct json_object *member(struct json_object *object, const char *name, size_t len)
{
    if (!json_object_is_type(object, json_type_object))
        return NULL;
    json_object_object_foreach(object, key, value)
    {
        if (strlen(key) == len && !memcmp(key, name, len))
            return value;
    }
    return NULL;
}

struct json_object *simx_json_get(struct json_object *run, const char *path)
{
    for (;;) {
        size_t len = strcspn(path, ".");
        run = member(run, path, len);
        if (!run || path[len] == '\0')
            return run;
        path += len + 1;
    }
}

double simx_json_get_number(struct json_object *run, const char *path)
{
    struct json_object *value = simx_json_get(run, path);

    if (!json_object_is_type(value, json_type_double) && !json_object_is_type(value, json_type_int))
        return NAN;
    return json_object_get_double(value);
}

/* What stdio kept of an error on the way. */
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
            json_object_object_add(paths, path, NULL); /* one that is there keeps its place */
        }
    }
    csv_line(out, paths, NULL);
    for (size_t i = 0; i < num_runs; i++)
        csv_line(out, paths, json_object_array_get_idx(rows, i));
    json_object_put(rows);
    json_object_put(paths);
    return flush(out);
}

struct cell {
    char *text;
    bool number;
};

static struct cell cell_of(const struct simx_column *column, struct json_object *run)
{
    struct json_object *value = simx_json_get(run, column->key);
    double number = simx_json_get_number(run, column->key);
    struct cell cell = {.number = isfinite(number)};
    bool text = json_object_is_type(value, json_type_string) ||
                json_object_is_type(value, json_type_boolean);

    if (cell.number) {
        if (asprintf(&cell.text, "%.*f", column->decimals, number) < 0)
            cell.text = NULL;
    } else {
        cell.text = strdup(text ? json_object_get_string(value) : "-");
    }
    return cell;
}

static struct cell head_of(const struct simx_column *column)
{
    struct cell cell = {0};

    if (!column->unit)
        cell.text = strdup(column->title);
    else if (asprintf(&cell.text, "%s [%s]", column->title, column->unit) < 0)
        cell.text = NULL;
    return cell;
}

/* Characters of UTF-8, each taken as one column wide. */
static int width_of(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* How a column is laid out: titles and dashes stand as its values do. */
struct layout {
    int width;
    bool left; /* some value is text */
};

static struct layout layout_of(const struct cell *column, size_t num_cells)
{
    struct layout layout = {0};

    for (size_t row = 0; row < num_cells; row++) {
        int width = width_of(column[row].text);
        layout.width = width > layout.width ? width : layout.width;
        if (row > 0 && !column[row].number && strcmp(column[row].text, "-") != 0)
            layout.left = true;
    }
    return layout;
}

static void table_cell(FILE *out, const struct cell *cell, struct layout layout, bool last)
{
    int pad = layout.width - width_of(cell->text);

    if (!layout.left || cell->number)
        fprintf(out, "%*s%s", pad, "", cell->text);
    else
        fprintf(out, "%s%*s", cell->text, last ? 0 : pad, "");
    fputs(last ? "\n" : "  ", out);
}

int simx_report_table(FILE *out, const struct simx_column *columns, size_t num_columns,
                      struct json_object *const *runs, size_t num_runs)
{
    size_t lines = num_runs + 1, num_cells = num_columns * lines;
    struct cell *cells = calloc(num_cells + 1, sizeof(*cells)); /* column by column */
    struct layout *layouts = calloc(num_columns + 1, sizeof(*layouts));
    int rc = -ENOMEM;

    if (!cells || !layouts)
        goto out;
    for (size_t i = 0; i < num_cells; i++) {
        const struct simx_column *column = &columns[i / lines];
        cells[i] = i % lines ? cell_of(column, runs[i % lines - 1]) : head_of(column);
        if (!cells[i].text)
            goto out;
    }
    for (size_t c = 0; c < num_columns; c++)
        layouts[c] = layout_of(&cells[c * lines], lines);
    for (size_t line = 0; line < lines; line++) {
        for (size_t c = 0; c < num_columns; c++)
            table_cell(out, &cells[c * lines + line], layouts[c], c + 1 == num_columns);
    }
    rc = flush(out);
out:
    for (size_t i = 0; cells && i < num_cells; i++)
        free(cells[i].text);
    free(layouts);
    free(cells);
    return rc;
}
