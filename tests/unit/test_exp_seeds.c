/* SPDX-License-Identifier: BSD-2-Clause */
/* Means and confidence intervals over seeds, against values computed by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>

#include "tests/unit/exp_runs.h"

enum { RUNS_MAX = 8 };

/* The summary of these runs. */
static struct json_object *summary_of(const char *const *texts)
{
    struct json_object *runs[RUNS_MAX] = {0};
    size_t n = exp_runs_make(runs, texts);

    return json_text_own(simx_seeds_summary(runs, n));
}

TEST(simx_student_t975__table)
{
    /* NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2. */
    static const struct {
        size_t degrees;
        double t;
    } cases[] = {
        {1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},   {5, 2.571},        {9, 2.262},
        {10, 2.228}, {19, 2.093}, {29, 2.045}, {30, 2.042},  {31, 2.040},       {40, 2.021},
        {60, 2.000}, {80, 1.990}, {99, 1.984}, {100, 1.984}, {SIZE_MAX, 1.960},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_true(fabs(simx_student_t975(cases[i].degrees) - cases[i].t) < 0.0006);
    for (size_t v = 2; v < 1000; v++)
        assert_true(simx_student_t975(v) < simx_student_t975(v - 1));
    assert_true(isnan(simx_student_t975(0)));
}

/*
 * 10, 12, 14: mean 12, s = 2, 4.3027 * 2 / sqrt(3) = 4.96833.
 * 1.5, 2.5, 5: mean 3, s^2 = (2.25 + 0.25 + 4) / 2 = 3.25, 4.3027 * sqrt(3.25 / 3) = 4.47839.
 */
TEST(simx_seeds_summary__three)
{
    static const char *const texts[] = {
        "{'name':'incast','seed':7,'config':{'hosts':16},'drops':10,'fct_us':{'max':1.5,'n':3}}",
        "{'name':'incast','seed':8,'config':{'hosts':16},'drops':12,'fct_us':{'max':2.5,'n':3}}",
        "{'name':'incast','seed':9,'config':{'hosts':16},'drops':14,'fct_us':{'max':5,'n':3}}",
        NULL,
    };
    struct json_object *summary = summary_of(texts);

    assert_string_equal(json_object_to_json_string_ext(summary, JSON_C_TO_STRING_PLAIN),
                        "{\"name\":\"incast\",\"config\":{\"hosts\":16},\"drops\":10,"
                        "\"fct_us\":{\"max\":1.5,\"n\":3},\"seeds\":3,"
                        "\"mean\":{\"drops\":12,\"fct_us\":{\"max\":3,\"n\":3}},"
                        "\"ci95\":{\"drops\":4.96833001,\"fct_us\":{\"max\":4.47839215,\"n\":0}}}");
}

TEST(simx_seeds_summary__one)
{
    static const char *const texts[] = {"{'seed':1,'drops':3,'fct_us':{'max':1.25}}", NULL};
    struct json_object *summary = summary_of(texts);

    assert_string_equal(json_object_to_json_string_ext(summary, JSON_C_TO_STRING_PLAIN),
                        "{\"drops\":3,\"fct_us\":{\"max\":1.25},\"seeds\":1,"
                        "\"mean\":{\"drops\":3,\"fct_us\":{\"max\":1.25}},"
                        "\"ci95\":{\"drops\":null,\"fct_us\":{\"max\":null}}}");
}

/*
 * 4, 6: mean 5, s^2 = 2, 12.7062 * sqrt(2 / 2) = 12.7062. What is no number in any run has no mean.
 */
TEST(simx_seeds_summary__nulls)
{
    static const char *const texts[] = {
        "{'a':null,'f':{'x':4},'t':'text','l':[1],'o':{'s':'u'},'b':true,'never':null}",
        "{'a':3,'f':null,'t':'text','l':[2],'o':{'s':'u'},'b':true,'never':null}",
        "{'f':{'x':6,'y':1},'t':'text','l':[3],'o':{'s':'u'},'b':true,'never':null,'late':{'z':2}}",
        NULL,
    };
    struct json_object *summary = summary_of(texts);

    assert_string_equal(
        json_object_to_json_string_ext(json_get(summary, "mean"), JSON_C_TO_STRING_PLAIN),
        "{\"a\":3,\"f\":{\"x\":5,\"y\":1},\"late\":{\"z\":2}}");
    assert_string_equal(
        json_object_to_json_string_ext(json_get(summary, "ci95"), JSON_C_TO_STRING_PLAIN),
        "{\"a\":null,\"f\":{\"x\":12.7062,\"y\":null},\"late\":{\"z\":null}}");
    assert_true(json_get_number(summary, "seeds") == 3);
}
