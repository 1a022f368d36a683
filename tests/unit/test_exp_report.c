/* SPDX-License-Identifier: BSD-2-Clause */
/* What mrd_sim prints of its runs: JSON lines, CSV, tables. */
#include <stdio.h>

#include <errno.h>
#include <math.h>

#include "tests/unit/exp_runs.h"

enum { RUNS_MAX = 4 };

TEST(json_number__text)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-3, "-3"},
        {0.5, "0.5"},
        {1e6, "1000000"},
        {123456789, "123456789"},
        {9007199254740991.0, "9007199254740991"},
        {9007199254740992.0, "9007199254740992"},
        {-9007199254740992.0, "-9007199254740992"},
        {2.0 / 3, "0.666666667"},
        {1234567.25, "1234567.25"},
        {1e300, "1e+300"},
        {1e-9, "1e-09"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json_object *number = json_number(cases[i].value);
        assert_string_equal(json_object_to_json_string(number), cases[i].text);
        /* The value is the printed one. */
        assert_true(json_object_get_double(number) == strtod(cases[i].text, NULL));
        json_object_put(number);
    }
    assert_null(json_number(NAN));
    assert_null(json_number(INFINITY));
    assert_null(json_number(-INFINITY));
}

TEST(json_get__paths)
{
    struct json_object *run = json_text(
        "{'name':'a', 'n':7, 'x':null, 'fct_us':{'max':2.5,'deep':{'er':1}}, 'fct':{'max':3}}");

    assert_true(json_get_number(run, "n") == 7);
    assert_true(json_get_number(run, "fct_us.max") == 2.5);
    assert_true(json_get_number(run, "fct.max") == 3);
    assert_true(json_get_number(run, "fct_us.deep.er") == 1);
    assert_true(isnan(json_get_number(run, "x")));
    assert_true(isnan(json_get_number(run, "name")));
    assert_true(isnan(json_get_number(run, "fct_us")));
    assert_true(isnan(json_get_number(run, "fct_us.min")));
    assert_true(isnan(json_get_number(run, "n.max")));
    assert_true(isnan(json_get_number(NULL, "n")));
    assert_string_equal(json_object_get_string(json_get(run, "name")), "a");
    assert_true(json_object_is_type(json_get(run, "fct_us"), json_type_object));
    assert_null(json_get(run, "fct_us."));
    assert_null(json_get(run, ""));
}

TEST(json_set__paths)
{
    struct json_object *run = json_text("{'fct_us':{'max':2.5},'n':7}");
    struct json_object *number = json_number(3);

    assert_true(json_set(run, "n", json_number(8)));
    assert_true(json_set(run, "fct_us.max", NULL));
    assert_true(json_set(run, "fct_us.min", json_number(1)));
    assert_false(json_set(run, "n.max", number));
    assert_false(json_set(run, "fct.max", number));
    assert_string_equal(json_object_to_json_string_ext(run, JSON_C_TO_STRING_PLAIN),
                        "{\"fct_us\":{\"max\":null,\"min\":1},\"n\":8}");
    json_object_put(number);
}

/* Print into memory and compare. */
static char *printed;
static size_t printed_len;

static FILE *print(void)
{
    free(printed);
    printed = NULL;
    FILE *out = open_memstream(&printed, &printed_len);
    assert_non_null(out);
    return out;
}

static void expect(FILE *out, const char *text)
{
    fclose(out);
    assert_string_equal(printed, text);
}

TEST(simx_report_json__one_line)
{
    struct json_object *run = json_text("{}");
    FILE *out = print();

    json_add_string(run, "name", "a/b\n\"c\"");
    json_add_string(run, "none", NULL);
    json_add_numbers(run, {"bytes", 1e15}, {"share", 0.25}, {"nan", NAN});
    assert_int_equal(simx_report_json(out, run), 0);
    /* It has been written before the file is closed. */
    assert_string_equal(printed, "{\"name\":\"a/b\\n\\\"c\\\"\",\"none\":null,"
                                 "\"bytes\":1000000000000000,\"share\":0.25,\"nan\":null}\n");
    assert_int_equal(simx_report_json(out, run), 0);
    fclose(out);
    assert_int_equal(printed_len, 2 * (strchr(printed, '\n') - printed + 1));
}

TEST(simx_report_json__full_disk)
{
    struct json_object *run = json_text("{}");
    FILE *out = fopen("/dev/full", "w");

    if (out) {
        assert_int_equal(simx_report_json(out, run), -ENOSPC);
        fclose(out);
    }
}

TEST(simx_report_csv__table)
{
    static const struct {
        const char *runs[RUNS_MAX];
        const char *csv;
    } cases[] = {
        {{"{'a':1,'b':'x'}"}, "a,b\n1,x\n"},
        /* Paths, in the order of their first appearance. */
        {{"{'a':{'x':1,'y':{'z':2}},'c':3}", "{'d':4,'a':{'w':5,'x':6}}"},
         "a.x,a.y.z,c,d,a.w\n1,2,3,,\n6,,,4,5\n"},
        {{"{'a':null,'b':true,'c':0.50}"}, "a,b,c\n,true,0.50\n"},
        {{"{'a':[1,2],'b':2}", "{'a':1}"}, "b,a\n2,\n,1\n"},
        /* RFC 4180, section 2, rules 5 to 7. */
        {{"{'a':'x,y','b':'say \\\"hi\\\"','c':'two\\nlines','d':' plain '}"},
         "a,b,c,d\n\"x,y\",\"say \"\"hi\"\"\",\"two\nlines\", plain \n"},
        {{"{'a,b':'\\r'}"}, "\"a,b\"\n\"\r\"\n"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json_object *runs[RUNS_MAX];
        size_t n = exp_runs_make(runs, cases[i].runs);
        FILE *out = print();
        assert_int_equal(simx_report_csv(out, runs, n), 0);
        expect(out, cases[i].csv);
    }
}

TEST(simx_report_table__columns)
{
    static const struct simx_column columns[] = {
        {"spray", "spray", NULL, 0},
        {"fct_us.max", "FCT max", "us", 1},
        {"drops", "drops", NULL, 0},
        {"note", "note", "\xc2\xb5", 0},
        {0},
    };
    static const char *const texts[] = {
        "{'spray':'ecmp','fct_us':{'max':1234.56},'drops':12345678,'note':'\xc2\xb5s'}",
        "{'spray':'round-robin','fct_us':{'max':null},'drops':0,'note':'long'}",
        "{'spray':null,'fct_us':{'max':0.04},'drops':[1],'note':7}",
        NULL,
    };
    struct json_object *runs[RUNS_MAX];
    size_t n = exp_runs_make(runs, texts);
    FILE *out = print();

    assert_int_equal(simx_report_table(out, columns, runs, n), 0);
    expect(out, "spray        FCT max [us]     drops  note [\xc2\xb5]\n"
                "ecmp               1234.6  12345678  \xc2\xb5s\n"
                "round-robin             -         0  long\n"
                "-                     0.0         -         7\n");
    out = print();
    assert_int_equal(simx_report_table(out, columns, runs, 0), 0);
    expect(out, "spray  FCT max [us]  drops  note [\xc2\xb5]\n");
}

int kit_after_all(void)
{
    free(printed);
    return 0;
}
