/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of mrd_perf: what it takes, and what it says of the rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include "tests/kit/kit.h"
#include "tests/unit/json_text.h"
#include "tests/unit/perf_cli.h"
#include "tools/perf/measure.h"
#include "tools/perf/options.h"
#include "tools/perf/report.h"

TEST(perf_options_parse__defaults)
{
    good("write_bw");
    assert_int_equal(options.params.test, PERF_WRITE_BW);
    assert_string_equal(options.params.transport, "mrd-udp");
    assert_int_equal(options.params.size_bytes, 65536);
    assert_int_equal(options.port, 4793);
    assert_int_equal(options.params.interval_ms, 10);
    assert_string_equal(options.params.wait, "auto");
    assert_string_equal(options.host, "");
    good("send_lat host.example");
    assert_int_equal(options.params.size_bytes, 2);
    assert_string_equal(options.host, "host.example");
    good("read_bw -o 7");
    assert_int_equal(options.params.size_bytes, 65536);
    assert_int_equal(options.params.outs, 7);
    good("atomic_bw");
    assert_int_equal(options.params.size_bytes, 8);
    good("atomic_lat -s 8");
}

TEST(perf_options_parse__perftest)
{
    good("send_bw -s 1M -n 1000 -t 64 -r 256 -q 4 -p 5000 -m 1024 -I 100 -Q 8 -F --report_gbits -d "
         "udp h");
    assert_int_equal(options.params.size_bytes, 1 << 20);
    assert_int_equal(options.params.iterations, 1000);
    assert_int_equal(options.params.tx_depth, 64);
    assert_int_equal(options.params.rx_depth, 256);
    assert_int_equal(options.params.qps, 4);
    assert_int_equal(options.port, 5000);
    assert_int_equal(options.params.mtu, 1024);
    assert_int_equal(options.params.inline_bytes, 100);
    assert_int_equal(options.params.cq_mod, 8);
    assert_true(options.quiet_cpufreq);
    assert_true(options.gbits);
    assert_string_equal(options.device, "udp");
    good("--size=64 --iters=5 --duration 3 --tx-depth 1 --rx-depth 2 --qp 1 --cq-mod 1 --mtu 64 "
         "write_lat");
    assert_int_equal(options.params.duration_s, 3);
    good("write_bw -a --local");
    assert_true(options.all_sizes);
}

TEST(perf_options_parse__ours)
{
    good("write_bw --source-ports 5000-5003,6000 --spray rr --cc dctcp --order msg --verify --drop "
         "0.01 "
         "--local --bind 1,0 --seed 7 --interval 5 --wait sleep -6 --out_json --out_json_file "
         "/tmp/x");
    assert_int_equal(options.num_source_ports, 5);
    assert_int_equal(options.source_ports[3], 5003);
    assert_int_equal(options.source_ports[4], 6000);
    assert_int_equal(options.params.paths, 5);
    assert_string_equal(options.params.spray, "rr");
    assert_string_equal(options.params.cc, "dctcp");
    assert_true(options.params.ordered);
    assert_true(options.params.verify);
    assert_int_equal(options.params.drop_ppm, 10000);
    assert_true(options.local && options.ipv6 && options.out_json);
    assert_int_equal(options.cpus[0], 1);
    assert_int_equal(options.cpus[1], 0);
    assert_int_equal(options.params.seed, 7);
    assert_int_equal(options.params.interval_ms, 5);
    assert_string_equal(options.params.wait, "sleep");
    assert_string_equal(options.out_json_file, "/tmp/x");
    good("write_bw --drop 1% --paths 16 --bind-address 127.0.0.1 --forever");
    assert_int_equal(options.params.drop_ppm, 10000);
    assert_int_equal(options.params.paths, 16);
    assert_true(options.forever);
}

TEST(perf_options_parse__compare)
{
    good("compare write_lat -s 64 --local --transports tcp,mrd-udp --repeat 3");
    assert_true(options.compare);
    assert_int_equal(options.params.test, PERF_WRITE_LAT);
    assert_int_equal(options.num_transports, 2);
    assert_string_equal(options.transports[0], "tcp");
    assert_int_equal(options.repeat, 3);
    good("compare send_bw 192.0.2.1");
    assert_int_equal(options.num_transports, 3);
    assert_string_equal(options.transports[0], "mrd-udp");
    assert_int_equal(options.repeat, 5);
}

TEST(perf_options_parse__other_actions)
{
    assert_int_equal(parse("--help"), PERF_PARSE_HELP);
    assert_int_equal(parse("-h"), PERF_PARSE_HELP);
    assert_int_equal(parse("write_bw --version"), PERF_PARSE_VERSION);
}

TEST(perf_options_parse__bad_words)
{
    bad("", "which test");
    bad("compare", "which test");
    bad("push_bw", "read_bw");
    bad("write_bw a b", "'b' is one word too many");
    bad("write_bw --frobnicate", "--frobnicate");
    bad("write_bw -%", "-%");
    bad("write_bw -s", "-s needs a value");
    bad("write_bw --size", "--size needs a value");
    bad("write_bw --verify=yes", "--verify takes no value");
}

TEST(perf_options_parse__bad_values)
{
    bad("write_bw -s 2G", "-s");
    bad("write_bw -s -1", "-s");
    bad("write_bw -s 10x", "'10x'");
    bad("write_bw -n 4", "-n");
    bad("write_bw -D 0", "-D");
    bad("write_bw -t 0", "-t");
    bad("write_bw -t 15001", "15000");
    bad("write_bw -p 65536", "65535");
    bad("write_bw -m 100", "multiple of 64");
    bad("write_bw -I 2000", "1024");
    bad("write_bw --drop 1", "--drop");
    bad("write_bw --drop -0.1", "--drop");
    bad("write_bw --drop 0.5x", "0.5x");
    bad("write_bw --paths 257", "256");
    bad("write_bw --paths 0", "--paths");
    bad("write_bw --source-ports 5000-4000", "--source-ports");
    bad("write_bw --source-ports 5000,5000", "distinct");
    bad("write_bw --source-ports 0", "--source-ports");
    bad("write_bw --source-ports 1,", "--source-ports");
    bad("write_bw --spray sideways", "adaptive");
    bad("write_bw --cc reno", "nscc");
    bad("write_bw --order all", "none or msg");
    bad("write_bw --bind 1,2,3 --local", "--bind");
    bad("write_bw --bind 0-1 --local", "CPU,CPU");
    bad("write_bw --interval 0", "--interval");
    bad("write_bw --wait forever", "auto, spin or sleep");
    bad("write_bw --transport pigeon", "mrd-udp, mrd-ibv, rc, raw-ud, raw-udp or tcp");
    bad("write_bw --seed x", "--seed");
}

TEST(perf_options_parse__conflicts)
{
    bad("write_bw --local host", "leave out the host");
    bad("write_bw --forever --local", "--forever");
    bad("write_bw --forever host", "--forever");
    bad("write_lat -q 2", "one QP");
    bad("write_bw --bind 0,1 host", "--local");
    bad("write_bw -a -s 64", "-s");
    bad("write_bw --paths 3 --source-ports 1-2", "does not match");
    bad("write_bw --transports tcp", "compare");
    bad("write_bw --repeat 3", "compare");
    bad("compare write_bw", "needs a host");
    bad("compare write_bw --local -a", "-a");
    bad("compare write_bw --local --transport tcp", "--transport is of TEST");
    bad("compare write_bw --local --transports tcp,tcp", "twice");
    bad("compare write_bw --local --transports tcp,pigeon", "pigeon");
    bad("write_bw --transport tcp -d udp", "-d");
    bad("write_bw --transport tcp -s 0", "0 bytes");
    good("write_bw -s 0");
    bad("read_bw --transport tcp", "tcp has no reads and atomics");
    bad("compare atomic_lat --local --transports mrd-udp,raw-udp", "raw-udp has no reads");
    bad("atomic_bw -s 16", "atomics are of 8 bytes");
    bad("atomic_bw -a", "-a");
    bad("read_bw -Q 4", "-Q");
    bad("write_bw -o 4", "-o is of reads");
    bad("read_lat -q 2", "one QP");
}

/* The options of perftest that are not supported one by one, as "X:name" or "name". */
static const char *next_unsupported(const char *word)
{
    static const struct perf_unsupported *u;
    static char words[512], *rest;

    if (!word)
        u = perf_unsupported;
    word = word ? strtok_r(NULL, " ", &rest) : NULL;
    if (word || !u->options)
        return word;
    assert_true(strlen(u->options) < sizeof(words) && strlen(u->instead) > 0);
    strcpy(words, u++->options);
    return strtok_r(words, " ", &rest);
}

/* An option of perftest that is not here is refused by its name, short and long. */
TEST(perf_options_parse__unsupported)
{
    bad("write_bw -C", "option -C (--report-cycles) of perftest is not supported: times are");
    bad("write_bw -c RC", "--transport");
    bad("write_bw -X 3", "--bind");
    bad("write_bw -X", "--bind");
    for (const char *word = next_unsupported(NULL); word; word = next_unsupported(word)) {
        bool has_letter = word[1] == ':';
        char line[192], expected[160];

        snprintf(expected, sizeof(expected), "--%s", has_letter ? word + 2 : word);
        snprintf(line, sizeof(line), "write_bw %s 1", expected);
        bad(line, expected);
        bad(line, "of perftest is not supported: ");
        if (has_letter) {
            snprintf(line, sizeof(line), "write_bw -%c 1", *word);
            bad(line, expected);
        }
    }
}

/* No option means two things. */
TEST(perf_unsupported__no_letter_twice)
{
    char letters[128] = "";

    for (const struct option_row *row = perf_option_table.rows; row->name; row++) {
        if (row->letter)
            strncat(letters, &row->letter, 1);
    }
    for (const char *word = next_unsupported(NULL); word; word = next_unsupported(word)) {
        if (word[1] == ':')
            strncat(letters, word, 1);
    }
    assert_true(strlen(letters) > 40);
    for (const char *letter = letters; *letter; letter++)
        assert_ptr_equal(strrchr(letters, *letter), letter);
}

static struct perf_params settled(const char *line)
{
    good(line);
    perf_params_settle(&options.params);
    return options.params;
}

TEST(perf_params_settle__bandwidth)
{
    struct perf_params p = settled("write_bw -s 1M");
    assert_int_equal(p.iterations, 5000);
    assert_true(p.tx_depth >= 4 && p.tx_depth <= 16);
    assert_int_equal(p.cq_mod, 1);
    p = settled("send_bw -s 64");
    assert_int_equal(p.iterations, 1000000);
    assert_int_equal(p.tx_depth, 128);
    assert_int_equal(p.rx_depth, 512);
    assert_int_equal(p.inline_bytes, 0);
    assert_true(p.cq_mod > 1 && p.cq_mod < p.tx_depth);
    p = settled("write_bw -s 1G");
    assert_true(p.iterations >= 5 && p.iterations < 20);
    p = settled("write_bw -D 2");
    assert_int_equal(p.iterations, 0);
    /* A completion a list, and room for a list. */
    p = settled("send_bw -s 64 -l 10");
    assert_int_equal(p.post_list, 10);
    assert_int_equal(p.cq_mod, 10);
    assert_int_equal(p.tx_depth, 128);
    p = settled("write_bw -s 1M --post_list 64");
    assert_int_equal(p.tx_depth, 64);
    assert_int_equal(settled("send_bw -l 10 -Q 5").cq_mod, 5);
    assert_int_equal(settled("read_bw -l 10").cq_mod, 1);
    p = settled("write_bw -t 8 -Q 100");
    assert_int_equal(p.cq_mod, 8);
}

/* The slots of verified messages do not eat all memory. */
TEST(perf_params_settle__slots)
{
    assert_int_equal(settled("send_bw -s 64 --verify -q 2").slots, 256);
    assert_int_equal(settled("send_bw -s 8M --verify -t 128").slots, 32);
    assert_int_equal(settled("send_bw -s 1G --verify").slots, 1);
    assert_int_equal(settled("send_bw -s 8M --verify -t 128 --threads 4").slots, 8);
    assert_true(settled("send_lat --verify").slots >= 2);
}

TEST(perf_params_settle__latency)
{
    struct perf_params p = settled("send_lat -s 64");
    assert_int_equal(p.iterations, 10000);
    assert_int_equal(p.warmup, 1000);
    assert_int_equal(p.inline_bytes, 220);
    assert_int_equal(settled("send_lat -s 64 -n 50").warmup, 5);
}

/* ---------------------------------------------------------------- medians of a comparison */

static struct json_object *report_of(double gbps, uint64_t packets, const char *verified)
{
    char text[200];

    snprintf(text, sizeof(text),
             "{'test':'write_bw','transport':'tcp','bw_gbps':%g,'packets_sent':%llu,'lat_us':null,"
             "'verified':%s,'samples':[%g]}",
             gbps, (unsigned long long)packets, verified, gbps);
    return json_text_parse(text);
}

static struct json_object *median_of(struct json_object **reports, size_t count)
{
    return json_text_own(perf_compare_median(reports, count, "bw_gbps"));
}

TEST(perf_compare_median__each_key)
{
    struct json_object *reports[3] = {report_of(9, 10, "true"), report_of(1, 30, "true"),
                                      report_of(5, 20, "true")};
    struct json_object *median = median_of(reports, 3);

    assert_true(json_get_number(median, "bw_gbps") == 5);
    assert_true(json_get_number(median, "packets_sent") == 20);
    assert_true(perf_report_passed(median));
    assert_true(json_object_get_double(json_object_array_get_idx(json_get(median, "samples"), 0)) ==
                5);
}

/* The member is there, and null. */
static bool has_null(struct json_object *object, const char *key)
{
    struct json_object *value;

    return json_object_object_get_ex(object, key, &value) && !value;
}

/* One run that is not verified spoils the median, too; what is null stays null. */
TEST(perf_compare_median__verified)
{
    struct json_object *reports[2] = {report_of(4, 1, "true"), report_of(2, 1, "false")};
    struct json_object *nulls[1] = {report_of(4, 1, "null")};
    struct json_object *median = median_of(reports, 2);

    assert_false(perf_report_passed(median));
    assert_true(json_get_number(median, "bw_gbps") == 3);
    assert_true(has_null(median_of(nulls, 1), "verified"));
}

/* One run on a busy machine makes the median doubtful; a run that does not know does not count. */
TEST(perf_compare_median__disturbed)
{
    static const char *const texts[] = {
        "{'bw_gbps':1,'disturbed':true,'cpu_others':0.5,'cpu_stolen':0.01}",
        "{'bw_gbps':2,'disturbed':null,'cpu_others':null,'cpu_stolen':null}",
        "{'bw_gbps':3,'disturbed':false,'cpu_others':0.1,'cpu_stolen':0.03}",
    };
    struct json_object *reports[3];

    for (size_t i = 0; i < 3; i++)
        reports[i] = json_text_parse(texts[i]);
    struct json_object *median = median_of(reports, 3);
    assert_true(json_object_get_boolean(json_get(median, "disturbed")));
    assert_true(json_get_number(median, "cpu_others") == 0.3);
    assert_true(json_get_number(median, "cpu_stolen") == 0.02);
    reports[0] = json_text_parse(texts[1]);
    assert_true(has_null(median_of(reports, 1), "disturbed"));
}

TEST(perf_compare_ratio__nulls)
{
    struct json_object *first = json_text_own(report_of(8, 1, "null"));
    struct json_object *second = json_text_own(report_of(2, 1, "null"));

    perf_compare_ratio(second, first);
    assert_true(json_get_number(second, "ratio_to_first.bw_gbps") == 0.25);
    assert_true(has_null(json_get(second, "ratio_to_first"), "lat_p50"));
}

/* A line a transport, a dash where there is nothing, and of zero a zero. */
TEST(perf_compare_print__columns)
{
    static char text[2048];
    struct json_object *medians =
        json_text("[{'transport':'mrd-ibv','cpu_s_per_gb':1.5,'peer_bytes':13309,"
                  "'peer_bytes_user':13309,'peer_bytes_kernel':0,'peer_bytes_idle':705,"
                  "'ratio_to_first':{'bw_gbps':1,'lat_p50':null}},"
                  "{'transport':'raw-ud','cpu_s_per_gb':0.25,'peer_bytes':null,"
                  "'ratio_to_first':{'bw_gbps':1.75,'lat_p50':null}}]");
    FILE *out = fmemopen(text, sizeof(text), "w");

    perf_compare_print(out, medians, false);
    fclose(out);
    assert_string_equal(strstr(text, "\n #"),
                        "\n #transport    ratio   CPU[s/GB]  peer[bytes]         user"
                        "       kernel         idle\n"
                        "  mrd-ibv      1.000      1.5000        13309        13309"
                        "            0          705\n"
                        "  raw-ud       1.750      0.2500            -            -"
                        "            -            -\n");
}

/* ---------------------------------------------------------------- what is measured */

/* Half of the round trips, by nearest rank. */
TEST(perf_latency_summary__percentiles)
{
    struct perf_latency l;
    struct perf_latency_summary s;

    assert_int_equal(perf_latency_init(&l, 10), 0);
    assert_false(perf_latency_summary(&l, true, &s));
    for (uint64_t i = 0; i < 1000; i++)
        perf_latency_add(&l, 2000 * ((i * 7) % 1000 + 1));
    assert_true(perf_latency_summary(&l, true, &s));
    assert_true(s.min_us == 1 && s.max_us == 1000);
    assert_true(s.p50_us == 501 && s.p99_us == 991 && s.p999_us == 1000);
    perf_latency_fini(&l);
}

/* Rates are between the first arrival and the last: what came with the first has no time. */
TEST(perf_meter_update__first_to_last)
{
    struct perf_meter m;

    perf_meter_init(&m, 10);
    perf_meter_update(&m, 5, 0);
    assert_int_equal(m.first_ns, 0);
    perf_meter_update(&m, 100, 64);
    perf_meter_update(&m, 200, 640);
    perf_meter_update(&m, 900, 640);
    assert_int_equal(m.first_ns, 100);
    assert_int_equal(m.first_bytes, 64);
    assert_int_equal(m.last_ns, 200);
    assert_int_equal(m.total_bytes, 640);
    perf_meter_fini(&m);
}

/* One sample an interval, on the grid of the first; silence gives samples, too. */
TEST(perf_meter_update__samples)
{
    struct perf_meter m;

    perf_meter_init(&m, 10);
    for (uint64_t ms = 1; ms <= 100; ms++)
        perf_meter_update(&m, ms * PERF_MSEC_NS, ms < 50 ? ms : 50);
    assert_int_equal(m.sampler.count, 10);
    assert_int_equal(m.sampler.samples[1].t_ns, 11 * PERF_MSEC_NS);
    assert_int_equal(m.sampler.samples[1].total, 11);
    assert_int_equal(m.sampler.samples[9].total, 50);
    assert_int_equal(perf_sampler_at(&m.sampler, 0), 0);
    assert_int_equal(perf_sampler_at(&m.sampler, 11 * PERF_MSEC_NS - 1), 1);
    assert_int_equal(perf_sampler_at(&m.sampler, 11 * PERF_MSEC_NS), 11);
    assert_int_equal(perf_sampler_at(&m.sampler, UINT64_MAX), 50);
    perf_meter_fini(&m);
}

/* What the client tells is what the server has; a number that does not fit is not cut. */
TEST(perf_params_from_json__too_large)
{
    struct json_object *told = json_text("{}");
    struct perf_params heard = {.qps = 77};

    good("write_bw -b -q 4 --order msg --seed 18446744073709551615");
    perf_params_to_json(&options.params, told);
    assert_int_equal(perf_params_from_json(&heard, told), 0);
    assert_int_equal(heard.qps, 4);
    assert_int_equal(heard.inline_bytes, -1);
    assert_true(heard.ordered && heard.bidirectional);
    assert_true(heard.seed == UINT64_MAX);
    json_object_object_add(told, "qp", json_object_new_uint64((1ull << 32) + 1));
    assert_int_equal(perf_params_from_json(&heard, told), -EPROTO);
    assert_int_equal(heard.qps, 4);
}

/* What doctor would not heed is refused, above all what would keep it from its end. */
TEST(perf_options_check__doctor)
{
    good("doctor");
    good("doctor h -F --out_json -p 5000");
    good("doctor --forever");
    assert_true(options.doctor);
    for (const struct option_row *row = perf_option_table.rows; row->name; row++) {
        static const char *const kept[] = {"port",     "ib-dev",       "device",        "CPU-freq",
                                           "out_json", "report_gbits", "out_json_file", "ipv6",
                                           "help",     "version",      "local",         "bind",
                                           "forever",  "bind-address", "key-file"};
        bool is_kept = false;

        for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
            is_kept |= strcmp(kept[i], row->name) == 0;
        assert_int_equal(is_kept, !row->modes || row->modes >> PERF_MODE_DOCTOR & 1);
    }
    bad("doctor h --run_infinitely", "--run_infinitely is of TEST");
    bad("doctor h -s 64", "not of doctor");
    bad("doctor h --drop 0.1", "--drop");
    bad("doctor h -d rocep1", "RDMA");
    bad("doctor h --repeat 3", "compare");
    bad("doctor h h2", "one word too many");
}
