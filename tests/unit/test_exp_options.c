/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of mrd_sim: values of every kind, what is refused and how, defaults, --set,
 * help.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/exp_cli.h"

static struct simx_config config;
static const struct simx_experiment *experiment;

static enum simx_parsed parse(const char *line)
{
    return exp_parse_any(&config, &experiment, line);
}

static void good(const char *line)
{
    experiment = exp_parse(&config, line);
}

/* Refused by exactly this sentence. */
static void bad(const char *line, const char *sentence)
{
    if (parse(line) != SIMX_PARSE_ERROR)
        fail_msg("'%s' was taken", line);
    if (strcmp(mrd_last_error(), sentence) != 0)
        fail_msg("'%s': '%s', not '%s'", line, mrd_last_error(), sentence);
}

/* --------------------------------------------------------------------------------------- values */

TEST(simx_options_parse__values)
{
    good("run --tm traffic.cm --topo fabric.topo --faults f --transport irn --cc dcqcn --plot "
         "p.svg");
    assert_string_equal(config.tm, "traffic.cm");
    assert_string_equal(config.topo, "fabric.topo");
    assert_string_equal(config.faults, "f");
    assert_string_equal(config.transport, "irn");
    assert_string_equal(config.cc, "dcqcn");
    assert_string_equal(config.plot, "p.svg");

    good("loss --hosts 64 --tiers 3 --leaf-hosts 8 --queue 50 --clock-skew 0 --paths 256 --payload "
         "8192 --seed 1000000000000000 --seeds 7 --jobs 3");
    assert_int_equal(config.hosts, 64);
    assert_int_equal(config.tiers, 3);
    assert_int_equal(config.leaf_hosts, 8);
    assert_int_equal(config.queue_packets, 50);
    assert_int_equal(config.skew_ppm, 0);
    assert_int_equal(config.paths, 256);
    assert_int_equal(config.payload_bytes, 8192);
    assert_int_equal(config.seed, 1000000000000000);
    assert_int_equal(config.seeds, 7);
    assert_int_equal(config.jobs, 3);
    assert_false(config.check);
    good("loss --check");
    assert_true(config.check);

    good("incast --senders 5 --victim --oversubscription 4 --gbps 12.5 --delay 0.25 --loss 1e-3 "
         "--ecn 0.1,3 --limit 0.5");
    assert_int_equal(config.senders, 5);
    assert_true(config.victim);
    assert_true(config.oversubscription == 4 && config.gbps == 12.5 && config.delay_us == 0.25);
    assert_true(config.loss == 1e-3 && config.limit_s == 0.5);
    assert_true(config.ecn_min == 0.1 && config.ecn_max == 3);

    good("failure --failure flap --at 1.5");
    assert_string_equal(config.failure, "flap");
    assert_true(config.at_us == 1.5);
    good("skew --spread 0");
    assert_true(config.spread == 0);
    good("scale --peers 9");
    assert_int_equal(config.peers, 9);
    good("fairness --flows 3 --tcp 2 --tcp-first --stagger 7.5 --duration 0.25 --rtt 80 --speedup "
         "2.5 --buffer 0.5 --buffer-bytes 64K");
    assert_int_equal(config.mrd_flows, 3);
    assert_int_equal(config.tcp_flows, 2);
    assert_true(config.tcp_first);
    assert_true(config.stagger_us == 7.5 && config.duration_s == 0.25 && config.rtt_us == 80);
    assert_true(config.speedup == 2.5 && config.buffer_bdp == 0.5);
    assert_int_equal(config.buffer_bytes, 64 << 10);
}

TEST(simx_options_parse__bytes)
{
    static const struct {
        const char *line;
        uint64_t bytes;
    } table[] = {
        {"loss --size 1", 1},
        {"loss --size 1000", 1000},
        {"loss --size 4K", 4 << 10},
        {"loss --size 1.5K", 1536},
        {"loss --size 2M", 2 << 20},
        {"loss --size 3G", UINT64_C(3) << 30},
        {"loss --size 1e12", 1000000000000},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        good(table[i].line);
        assert_int_equal(config.bytes, table[i].bytes);
    }
}

TEST(simx_options_parse__flags)
{
    good("alltoall");
    assert_false(config.at_once || config.json || config.csv || config.quiet || config.victim);
    good("alltoall --at-once --json --quiet");
    assert_true(config.at_once && config.json && config.quiet);
    good("alltoall --csv");
    assert_true(config.csv && !config.json);
    good("run --wire-overhead htsim");
    assert_string_equal(config.wire_overhead, "htsim");
    good("run --wire-overhead htsim --wire-overhead ethernet");
    assert_string_equal(config.wire_overhead, "ethernet");
    good("run --knows sockets");
    assert_string_equal(config.knows, "sockets");
    good("run --knows rdma");
    assert_string_equal(config.knows, "rdma");
}

/*
 * One dash or two, the value as a word or behind '=', anywhere after the experiment, also cut
 * short.
 */
TEST(simx_options_parse__forms)
{
    static const char *const lines[] = {
        "run -tm x.cm -hosts 48 -json",  "run --tm x.cm --hosts 48 --json",
        "run -tm=x.cm --hosts=48 -json", "run --json -hosts 32 -hosts 48 --tm x.cm",
        "run --js --hos 48 --tm x.cm",
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        good(lines[i]);
        assert_string_equal(config.tm, "x.cm");
        assert_int_equal(config.hosts, 48);
        assert_true(config.json);
    }
}

/* Every option takes a value within its bounds, with both dashes, and none outside. */
TEST(simx_options_parse__bounds)
{
    for (const struct option_row *option = simx_options.rows; option->name; option++) {
        bool is_number = option->type == OPTION_COUNT || option->type == OPTION_BYTES ||
                         option->type == OPTION_REAL;

        for (unsigned dashes = 1; is_number && dashes <= 2; dashes++) {
            char line[EXP_LINE_BYTES];
            /* 64 divides the least and the greatest payload. */
            const long double value[] = {option->low, option->high};

            for (unsigned j = 0; j < 2; j++) {
                snprintf(line, sizeof(line), "run %s%s %.12Lg", dashes == 1 ? "-" : "--",
                         option->name, value[j]);
                good(line);
            }
            snprintf(line, sizeof(line), "run %s%s %.12Lg", dashes == 1 ? "-" : "--", option->name,
                     option->high * 1.000001 + 1);
            assert_int_equal(parse(line), SIMX_PARSE_ERROR);
            snprintf(line, sizeof(line), "run %s%s -1", dashes == 1 ? "-" : "--", option->name);
            assert_int_equal(parse(line), SIMX_PARSE_ERROR);
        }
    }
}

/* -------------------------------------------------------------------------------------- refused */

/* Each of the values, apart by blanks, is refused as not what is expected. */
static void bad_values(const char *option, const char *expected, const char *values)
{
    char text[EXP_LINE_BYTES], line[EXP_LINE_BYTES], sentence[2 * EXP_LINE_BYTES], *rest = text;

    snprintf(text, sizeof(text), "%s", values);
    for (char *value; (value = strtok_r(rest, " ", &rest));) {
        snprintf(line, sizeof(line), "loss %s %.100s", option, value);
        snprintf(sentence, sizeof(sentence), "%s: expected %s, found '%s'", option, expected,
                 value);
        bad(line, sentence);
    }
}

TEST(simx_options_parse__bad_numbers)
{
    bad_values("--hosts", "a whole number from 2 to 65536", "x7 7x 1 2.5 4K nan 65537");
    bad_values("--size", "a whole number from 1 to 1000000000000", "0 1T 1KK 0.3K 1e300");
    bad_values("--loss", "P from 0 to 0.999999999", "1 1%");
    bad_values("--gbps", "GBPS from 1e-06 to 100000", "0");
    bad_values("--delay", "US from 0 to 1000000", "inf");
    bad_values("--ecn", "MIN,MAX from 0 to 1000000, the smaller first",
               "0.2 0.2, 0.2,0.8,1 0.8,0.2");
    bad_values("--rtt", "US from 1 to 10000000", "0 0.5 80ms");
    bad_values("--speedup", "RATIO from 1 to 10000", "0.5 x");
    bad_values("--buffer", "BDP from 0.001 to 1000", "0 1bdp");
    bad_values("--buffer-bytes", "a whole number from 1 to 1000000000000", "0 1.5");
    bad_values("--tcp", "a whole number from 0 to 64", "65 two");
    bad_values("--flows", "a whole number from 1 to 64", "0 65");
    bad_values("--stagger", "US from 0 to 1e+09", "-1");
    bad_values("--duration", "S from 0.0001 to 3600", "0 1h");
}

TEST(simx_options_parse__bad_words)
{
    char line[EXP_LINE_BYTES], sentence[EXP_LINE_BYTES];

    bad("run --transport quantum-pigeons",
        "--transport: expected mrd, rc or irn, found 'quantum-pigeons'");
    bad("run --transport quantum-pigeons-2",
        "--transport: expected mrd, rc or irn, found 'quantum-pigeons-2'");
    bad("run --tm=", "--tm: expected FILE of at most 511 bytes, found ''");
    bad("run --spray paint",
        "--spray: expected adaptive, single, rr, random or reps, found 'paint'");
    bad("run --cc dcqcn", "--cc: mrd has no 'dcqcn'");
    bad("run --cc vegas", "--cc: expected nscc, dctcp, swift, none, fixed or dcqcn, found 'vegas'");
    bad("run --transport rc --cc nscc", "--cc: rc has none and dcqcn, not 'nscc'");
    bad("run --cc nscc --transport irn", "--cc: irn has none and dcqcn, not 'nscc'");
    bad("failure --failure fire",
        "--failure: expected blackhole, down, flap or degrade, found 'fire'");
    bad("run --wire-overhead none", "--wire-overhead: expected ethernet or htsim, found 'none'");
    bad("run --knows all", "--knows: expected sockets, rdma or fabric, found 'all'");
    bad("run --payload 100", "--payload: expected a multiple of 64, found 100");
    bad("run --json --csv", "--json and --csv both want stdout");

    snprintf(line, sizeof(line), "run --plot %0450d", 0); /* fits */
    good(line);
    snprintf(line, sizeof(line), "run --spray %020d", 0);
    snprintf(sentence, sizeof(sentence),
             "--spray: expected adaptive, single, rr, random or reps, found '%020d'", 0);
    bad(line, sentence);
}

TEST(simx_options_parse__bad_options)
{
    bad("", "which experiment?");
    bad("--json", "which experiment?");
    bad("walk", "there is no experiment 'walk'");
    bad("run more", "there is no experiment 'more'");
    bad("--hosts 8 run", "the experiment comes first, and once: mrd_sim run [OPTION...]");
    bad("loss run", "the experiment comes first, and once: mrd_sim run [OPTION...]");
    bad("run --nonsense", "there is no option --nonsense");
    bad("run -nonsense 1", "there is no option --nonsense");
    bad("run -x", "there is no option --x");
    bad("run --leaf_hosts 4", "there is no option --leaf_hosts; is it --leaf-hosts?");
    bad("run --hots=8", "there is no option --hots=8; is it --hosts?");
    bad("run --tm", "--tm needs a value");
    bad("run -hosts", "-hosts needs a value");
    bad("run --json=1", "--json takes no value");
    bad("run -quiet=yes", "-quiet takes no value");
    bad("run --a-name-that-is-longer-than-any-option-that-there-is-or-will-be",
        "there is no option --a-name-that-is-longer-than-any-option-that-there-is-or-will-be");
}

/* ------------------------------------------------------------------------------------- defaults */

TEST(simx_options_parse__defaults_of_all)
{
    good("run");
    assert_string_equal(config.experiment, "run");
    assert_string_equal(config.transport, "mrd");
    assert_string_equal(config.spray, "adaptive");
    assert_string_equal(config.cc, "nscc");
    assert_string_equal(config.tm, "");
    assert_string_equal(config.topo, "");
    assert_string_equal(config.faults, "");
    assert_string_equal(config.plot, "");
    assert_int_equal(config.bytes, 0);
    assert_int_equal(config.hosts, 128);
    assert_int_equal(config.tiers, 2);
    assert_int_equal(config.leaf_hosts, 16);
    assert_true(config.oversubscription == 1 && config.gbps == 100 && config.delay_us == 1);
    assert_int_equal(config.queue_packets, 200);
    assert_true(config.ecn_min == 0.2 && config.ecn_max == 0.8 && config.loss == 0);
    assert_int_equal(config.skew_ppm, 50);
    assert_string_equal(config.wire_overhead, "ethernet");
    assert_string_equal(config.knows, "fabric");
    assert_int_equal(config.paths, 64);
    assert_int_equal(config.payload_bytes, 4096);
    assert_int_equal(config.seed, 1);
    assert_int_equal(config.seeds, 1);
    assert_int_equal(config.jobs, 0);
    assert_true(config.limit_s == 10);
    assert_memory_equal(&config.tune, &mrd_tune_default, sizeof(config.tune));
    assert_memory_equal(&config.model_tune, &model_tune_default, sizeof(config.model_tune));
    good("run --transport rc");
    assert_string_equal(config.cc, "none");
}

/* The man page and --help tell the same; 0: it is a sweep, or the experiment's own. */
TEST(simx_options_parse__defaults_of_each)
{
    static const struct {
        const char *name;
        uint32_t hosts, leaf_hosts;
        uint64_t bytes;
        unsigned points;
    } table[] = {
        {"run", 128, 16, 0, 1},
        {"loss", 32, 16, 0, 4 * 8},
        {"collision", 128, 16, 2 << 20, 6},
        {"incast", 128, 16, 2 << 20, 8}, /* 1, 2, ... 64, 127 */
        {"skew", 32, 16, 256 << 20, 6},
        {"failure", 32, 16, 32 << 20, 4},
        {"scale", 0, 16, 64 << 10, 7},
        {"allreduce", 32, 8, 0, 7},
        {"alltoall", 32, 8, 0, 7},
        {"fairness", 128, 16, 0, 1},
        {"wan", 128, 16, 0, 4 * 4},
    };
    enum { NUM = sizeof(table) / sizeof(table[0]) };

    assert_null(simx_experiments[NUM]);
    for (unsigned i = 0; i < NUM; i++) {
        good(table[i].name);
        assert_ptr_equal(experiment, simx_experiment_find(table[i].name));
        assert_int_equal(config.hosts, table[i].hosts);
        assert_int_equal(config.leaf_hosts, table[i].leaf_hosts);
        assert_int_equal(config.bytes, table[i].bytes);
        assert_int_equal(simx_points(experiment, &config), table[i].points);
    }
    good("failure");
    assert_true(config.at_us == 500);
    assert_string_equal(config.failure, "");
    good("loss");
    assert_true(config.loss < 0);
    good("skew");
    assert_true(config.spread < 0);
    good("fairness");
    assert_int_equal(config.mrd_flows, 4);
    assert_int_equal(config.tcp_flows, 0);
    assert_true(config.stagger_us == 20000 && config.duration_s == 0.5 && config.rtt_us == 100);
    assert_true(config.gbps == 10 && config.speedup == 4 && config.ecn_max == 0);
    assert_true(config.buffer_bdp == 1 && config.buffer_bytes == 0);
    assert_string_equal(config.knows, "sockets");
    good("wan");
    assert_true(config.duration_s == 10 && config.rtt_us < 0 && config.loss < 0);
    assert_true(config.gbps == 1 && config.speedup == 10 && config.ecn_max == 0);
    assert_int_equal(config.payload_bytes, 1408);
    assert_string_equal(config.knows, "sockets");
}

/* Of a sweep, as --help names them: the values of some points. */
TEST(simx_options_parse__sweeps)
{
    static const uint32_t senders[] = {1, 2, 4, 8, 16, 32, 64, 127};
    static const double losses[] = {0, 0x1p-14, 0x1p-12, 0x1p-10, 0x1p-8, 0.01, 0.02, 0.05};
    static const double spreads[] = {0, 0.25, 0.5, 1, 2, 4};
    static const double far_losses[] = {0, 1e-4, 1e-3, 1e-2}, rtts_us[] = {1e3, 5e3, 2e4, 8e4};
    static const uint64_t sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20};

    for (unsigned i = 0; i < 8; i++) {
        exp_configure("incast", i, &experiment, &config);
        assert_int_equal(config.senders, senders[i]);
    }
    for (unsigned i = 0; i < 4 * 8; i++) {
        exp_configure("loss", i, &experiment, &config);
        assert_int_equal(config.bytes, sizes[i / 8]);
        assert_true(config.loss == losses[i % 8]);
    }
    for (unsigned i = 0; i < 6; i++) {
        exp_configure("skew", i, &experiment, &config);
        assert_true(config.spread == spreads[i]);
    }
    for (unsigned i = 0; i < 4 * 4; i++) {
        exp_configure("wan", i, &experiment, &config);
        assert_true(config.loss == far_losses[i / 4]);
        assert_true(config.rtt_us == rtts_us[i % 4]);
    }
}

/* ---------------------------------------------------------------------------------------- --set */

TEST(simx_options_parse__set)
{
    struct mrd_tune tune = mrd_tune_default;
    struct model_tune model = model_tune_default;

    good("run --set nscc.target_rtts=1.5 -set dcqcn.cnp_us=4 --set=irn.window_packets=10 --set "
         "nscc.target_rtts=2");
    tune.nscc.target_rtts = 2;
    model.dcqcn.cnp_us = 4;
    model.irn.window_packets = 10;
    assert_memory_equal(&config.tune, &tune, sizeof(tune));
    assert_memory_equal(&config.model_tune, &model, sizeof(model));
}

/* Every constant of both tables can be set. */
TEST(simx_options_parse__set_each)
{
    for (unsigned table = 0; table < 2; table++) {
        unsigned num;
        const struct mrd_tune_entry *entry =
            table ? model_tune_entries(&num) : mrd_tune_entries(&num);

        for (unsigned i = 0; i < num; i++) {
            const char *values =
                table ? (const char *)&config.model_tune : (const char *)&config.tune;
            char line[EXP_LINE_BYTES];

            snprintf(line, sizeof(line), "run --set %s=12345", entry[i].name);
            good(line);
            assert_true(*(const double *)(const void *)(values + entry[i].offset) == 12345);
        }
    }
}

TEST(simx_options_parse__bad_sets)
{
    enum { TOO_MANY = SIMX_SETS_MAX + 1 };
    char text[] = "cc.start_bdp=1",
         *argv[2 + 2 * TOO_MANY + 1] = {(char *)"mrd_sim", (char *)"run"};
    int argc = 2;

    bad("run --set no.such=1", "--set: there is no constant 'no.such' (--set list names all)");
    bad_values("--set", "NAME=VALUE, a number of at least 0",
               "nscc.gain cc.start_bdp= cc.start_bdp=-1 cc.start_bdp=1x "
               "cc.a_name_that_is_longer_than_that_of_any_constant=1");
    for (unsigned i = 0; i < TOO_MANY; i++) {
        argv[argc++] = (char *)"--set";
        argv[argc++] = text;
    }
    assert_int_equal(simx_options_parse(&config, &experiment, argc, argv), SIMX_PARSE_ERROR);
    assert_string_equal(mrd_last_error(), "--set: more than 64 of them");
    assert_int_equal(simx_options_parse(&config, &experiment, argc - 2, argv), SIMX_PARSE_RUN);
}

/* ----------------------------------------------------------------------------------------- help */

TEST(simx_options_parse__help)
{
    assert_int_equal(parse("--help"), SIMX_PARSE_HELP);
    assert_null(experiment);
    assert_int_equal(parse("-h"), SIMX_PARSE_HELP);
    assert_int_equal(parse("-help"), SIMX_PARSE_HELP);
    assert_int_equal(parse("incast --help"), SIMX_PARSE_HELP);
    assert_ptr_equal(experiment, simx_experiment_find("incast"));
    assert_int_equal(parse("loss --hosts 64 -h"), SIMX_PARSE_HELP);
    assert_ptr_equal(experiment, simx_experiment_find("loss"));
    assert_int_equal(parse("--version"), SIMX_PARSE_VERSION);
    assert_int_equal(parse("run -version"), SIMX_PARSE_VERSION);
    assert_int_equal(parse("--set list"), SIMX_PARSE_LIST);
    assert_int_equal(parse("run -set list"), SIMX_PARSE_LIST);
}

/* All that is printed, until the next call. */
static const char *help_of(const struct simx_experiment *of)
{
    static char text[16384];
    FILE *out = fmemopen(text, sizeof(text), "w");

    assert_non_null(out);
    simx_options_help(out, of);
    assert_true(ftell(out) > 0 && ftell(out) < (long)sizeof(text) - 1);
    fclose(out);
    return text;
}

/* The options of an experiment, with its own defaults, or all options. */
TEST(simx_options_help__options)
{
    for (int i = 0; i < SIMX_NUM_EXPERIMENTS; i++)
        assert_string_equal(simx_options.modes[i], simx_experiments[i]->name);
    for (int i = -1; i < SIMX_NUM_EXPERIMENTS; i++) {
        const char *text = help_of(i < 0 ? NULL : simx_experiments[i]);

        for (const struct option_row *option = simx_options.rows; option->name; option++) {
            char needle[64];
            bool shown = i < 0 || !option->modes || option->modes >> i & 1;

            snprintf(needle, sizeof(needle), "\n  %s--%s ", option->letter ? "-h, " : "",
                     option->name);
            assert_int_equal(strstr(text, needle) != NULL, shown);
        }
    }
    assert_non_null(strstr(help_of(simx_experiment_find("run")), "those of a leaf (128)\n"));
    assert_non_null(strstr(help_of(simx_experiment_find("loss")), "those of a leaf (32)\n"));
    assert_non_null(strstr(help_of(simx_experiment_find("loss")), "0.02 and 0.05 in turn)\n"));
}
