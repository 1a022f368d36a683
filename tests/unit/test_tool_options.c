/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of options that the tools share: values of each type, sentences, modes, --help. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tools/common/options.h"

enum { FIRST, SECOND, THIRD, STOPPED = 7 };

struct values {
    bool flag;
    char text[4], choice[8];
    uint8_t byte;
    uint16_t half;
    uint64_t bytes;
    double real, pair[2];
    uint32_t ppm;
    bool odd;
};

static int take_even(const struct option_value *v)
{
    ((struct values *)v->to)->odd = strlen(v->text) % 2;
    return strcmp(v->text, "what") == 0    ? option_fail(v->error, "what?")
           : ((struct values *)v->to)->odd ? -EINVAL
                                           : 0;
}

#define IN(member) OPTION_MEMBER(struct values, member)

static const char *const modes[] = {"first", "second", "third", NULL};
static const char *const choices[] = {"red", "green", "blue", NULL};
static const struct option_row rows[] = {
    {"flag", 'f', OPTION_FLAG, IN(flag), 0, 0, NULL, .help = "a flag", .heading = "Some"},
    {"text", 0, OPTION_TEXT, IN(text), 0, 0, "TEXT", .help = "a text", .value = "abc"},
    {"choice", 'c', OPTION_CHOICE, IN(choice), 0, 0, "C", .help = "", .values = choices},
    {"byte", 0, OPTION_COUNT, IN(byte), 1, 255, "N", .help = "a count", .modes = 1 << FIRST},
    {"half", 0, OPTION_COUNT, IN(half), 0, 65535, "N", .help = "another",
     .modes = 1 << FIRST | 1 << SECOND, .heading = "More"},
    {"bytes", 'b', OPTION_BYTES, IN(bytes), 0, UINT64_MAX, "N", .help = "a size",
     .modes = 1 << SECOND | 1 << THIRD},
    {"real", 0, OPTION_REAL, IN(real), 1e-4, 10, "X", .help = "a number", .value = "0.0001"},
    {"pair", 0, OPTION_PAIR, IN(pair), 0, 1, "A,B", .help = "two"},
    {"share", 0, OPTION_SHARE, IN(ppm), 0, 0, "P", .help = "a share"},
    {"even", 0, OPTION_OTHER, 0, 0, 0, 0, "E", .help = "of even length", .expected = "an even one",
     .take = take_even},
    {"stop", 0, OPTION_STOP, 0, 0, STOPPED, 0, NULL, .help = "stop"},
    {0},
};
static const struct option_table table = {.rows = rows, .modes = modes};

static struct values values;
static char error[OPTION_ERROR_BYTES];
static struct option_line line;

static int parse(const char *words)
{
    static char text[256];
    char *argv[16] = {"program"}, *rest;
    int argc = 1;

    values = (struct values){0};
    option_defaults(&table, &values);
    line = (struct option_line){.table = &table, .to = &values, .error = error};
    snprintf(text, sizeof(text), "%s", words);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return option_parse(&line, argc, argv);
}

static void good(const char *words)
{
    if (parse(words) != 0)
        fail_msg("'%s': %s", words, error);
}

static void bad(const char *words, const char *sentence)
{
    assert_int_equal(parse(words), -EINVAL);
    assert_string_equal(error, sentence);
}

TEST(option_parse__values)
{
    good("");
    assert_string_equal(values.text, "abc");
    assert_true(values.real == 1e-4);
    good("-f --text=x -cblue --byte 0xff --half 65535 -b 18446744073709551615 --real 1e1");
    assert_true(values.flag && values.byte == 255 && values.half == 65535);
    assert_true(values.bytes == UINT64_MAX && values.real == 10);
    assert_string_equal(values.text, "x");
    assert_string_equal(values.choice, "blue");
    good("-b 1.5k --pair 0.25,1 --share 1% --even ab");
    assert_true(values.bytes == 1536 && values.pair[0] == 0.25 && values.pair[1] == 1);
    assert_int_equal(values.ppm, 10000);
    good("--share 0.999999 -b 3G");
    assert_int_equal(values.ppm, 999999);
    assert_true(values.bytes == 3ull << 30);
    assert_int_equal(parse("--stop --byte 0"), STOPPED);
}

TEST(option_parse__refused)
{
    bad("--byte 256", "--byte: expected a whole number from 1 to 255, found '256'");
    bad("--byte -1", "--byte: expected a whole number from 1 to 255, found '-1'");
    bad("--byte 1K", "--byte: expected a whole number from 1 to 255, found '1K'");
    bad("-b 16777216T", "-b, --bytes: expected a whole number from 0 to 18446744073709551615, "
                        "found '16777216T'");
    bad("-b 99999999999G", "-b, --bytes: expected a whole number from 0 to 18446744073709551615, "
                           "found '99999999999G'");
    bad("--text long", "--text: expected TEXT of at most 3 bytes, found 'long'");
    bad("-c pink", "-c, --choice: expected red, green or blue, found 'pink'");
    bad("--real nan", "--real: expected X from 0.0001 to 10, found 'nan'");
    bad("--pair 1,0", "--pair: expected A,B from 0 to 1, the smaller first, found '1,0'");
    bad("--share 1", "--share: expected a share below 1, such as 0.01 or 1%, found '1'");
    bad("--share 0.9999999",
        "--share: expected a share below 1, such as 0.01 or 1%, found '0.9999999'");
    bad("--even odd", "--even: expected an even one, found 'odd'");
    bad("--even what", "what?");
    bad("--byte", "--byte needs a value");
    bad("--flag=1", "--flag takes no value");
    bad("-x", "there is no option -x");
    bad("--bite 3", "there is no option --bite; is it --byte?");
    bad("--quite", "there is no option --quite");
    bad("--b 3", "--b is short for several: --byte, --bytes");
    bad("--te=3 --f --re=1 --byt=3", "--byt=3 is short for several: --byte, --bytes");
}

TEST(option_check_mode__given)
{
    good("word --half 1 more");
    assert_int_equal(line.num_words, 2);
    assert_string_equal(line.words[1], "more");
    assert_true(option_given(&line, "half") && !option_given(&line, "byte"));
    assert_int_equal(option_check_mode(&line, SECOND), 0);
    assert_int_equal(option_check_mode(&line, THIRD), -EINVAL);
    assert_string_equal(error, "--half is of first and second, not of third");
}

/* Of a mode: its rows, below the heading that stands above; of all: with the modes. */
TEST(option_help__modes)
{
    static char text[4096];
    FILE *out = fmemopen(text, sizeof(text), "w");

    option_help(out, &table, THIRD);
    fclose(out);
    assert_non_null(strstr(text, "\nSome:\n  -f, --flag               a flag\n"));
    assert_null(strstr(text, "--half"));
    assert_non_null(strstr(text, "\nMore:\n  -b, --bytes N            a size\n"));
    out = fmemopen(text, sizeof(text), "w");
    option_help(out, &table, -1);
    fclose(out);
    assert_non_null(strstr(text, "--text TEXT              a text (abc)\n"));
    assert_non_null(strstr(text, "-c, --choice C           red, green, blue\n"));
    assert_non_null(strstr(text, "--byte N                 first: a count\n"));
    assert_non_null(strstr(text, "-b, --bytes N            second, third: a size\n"));
}
