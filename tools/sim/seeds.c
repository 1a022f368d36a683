/* SPDX-License-Identifier: BSD-2-Clause */
/* Mean and confidence interval of runs with several seeds. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/report.h"

double simx_student_t975(size_t degrees)
{
    /* NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, with one digit more. */
    static const double few[] = {
        12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
        2.2010,  2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
        2.0796,  2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
    };
    const double z = 1.959963985; /* of the normal distribution */
    double v = (double)degrees;

    if (degrees <= sizeof(few) / sizeof(few[0]))
        return degrees ? few[degrees - 1] : NAN;
    /* Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5, its first terms. */
    return z + (pow(z, 3) + z) / (4 * v) + (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * v * v);
}

static bool is_number(struct json_object *value)
{
    return json_object_is_type(value, json_type_double) ||
           json_object_is_type(value, json_type_int);
}

/* Mean and half width of its confidence interval of those of n values that are numbers. */
static void summarise(struct json_object *const *values, size_t n, double *mean, double *ci95)
{
    double sum = 0, squares = 0;
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        if (is_number(values[i])) {
            sum += json_object_get_double(values[i]);
            count++;
        }
    }
    *mean = sum / (double)count;
    for (size_t i = 0; i < n; i++) {
        if (is_number(values[i]))
            squares += pow(json_object_get_double(values[i]) - *mean, 2);
    }
    *ci95 = count < 2 ? NAN
                      : simx_student_t975(count - 1) *
                            sqrt(squares / (double)(count - 1) / (double)count);
}

static void add_unless_empty(struct json_object *object, const char *key, struct json_object *inner)
{
    if (json_object_object_length(inner) > 0)
        json_object_object_add(object, key, inner);
    else
        json_object_put(inner);
}

static void compare(struct json_object *const *objects, size_t n, bool outermost,
                    struct json_object *mean, struct json_object *ci95);

/* One member of n objects: a number, or an object of such, in any of them. */
static void compare_member(struct json_object *const *objects, size_t n, const char *key,
                           struct json_object *mean, struct json_object *ci95)
{
    struct json_object **values = calloc(n, sizeof(struct json_object *));
    bool numbers = false, nested = false;

    for (size_t i = 0; values && i < n; i++) {
        values[i] = objects[i] ? json_object_object_get(objects[i], key) : NULL;
        numbers |= is_number(values[i]);
        nested |= json_object_is_type(values[i], json_type_object);
    }
    if (nested) {
        struct json_object *inner_mean = json_object_new_object();
        struct json_object *inner_ci95 = json_object_new_object();
        compare(values, n, false, inner_mean, inner_ci95);
        add_unless_empty(mean, key, inner_mean);
        add_unless_empty(ci95, key, inner_ci95);
    } else if (numbers) {
        double middle, half_width;
        summarise(values, n, &middle, &half_width);
        json_add_numbers(mean, {key, middle});
        json_add_numbers(ci95, {key, half_width});
    }
    free(values);
}

/* Every member of n objects, of which some may be missing or something else. */
static void compare(struct json_object *const *objects, size_t n, bool outermost,
                    struct json_object *mean, struct json_object *ci95)
{
    struct json_object *seen = json_object_new_object();

    for (size_t i = 0; i < n; i++) {
        if (!json_object_is_type(objects[i], json_type_object))
            continue;
        json_object_object_foreach(objects[i], key, unused)
        {
            (void)unused;
            if (json_object_object_get_ex(seen, key, NULL))
                continue;
            json_object_object_add(seen, key, NULL);
            if (!outermost || (strcmp(key, "seed") != 0 && strcmp(key, "config") != 0))
                compare_member(objects, n, key, mean, ci95);
        }
    }
    json_object_put(seen);
}

struct json_object *simx_seeds_summary(struct json_object *const *runs, size_t n)
{
    struct json_object *summary = NULL, *mean = json_object_new_object(),
                       *ci95 = json_object_new_object();

    json_object_deep_copy(runs[0], &summary, NULL);
    json_object_object_del(summary, "seed");
    json_add_numbers(summary, {"seeds", (double)n});
    compare(runs, n, true, mean, ci95);
    json_object_object_add(summary, "mean", mean);
    json_object_object_add(summary, "ci95", ci95);
    return summary;
}
