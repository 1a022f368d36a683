/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of mrd_perf that say how an end sends and waits: -b, -e, --threads. */
#include "tests/unit/perf_cli.h"

TEST(perf_options_parse__events)
{
    good("send_lat -e");
    assert_true(options.params.events);
    good("write_bw --events -b --verify host");
    assert_true(options.params.events && options.params.bidirectional);
    good("send_bw");
    assert_false(options.params.events);
    good("write_lat -e --verify");
    good("write_lat -e --write_with_imm");
    bad("write_lat -e", "write_lat needs --write_with_imm");
    bad("send_bw -e --transport tcp", "tcp has no completion channel");
    bad("send_bw -e --transport raw-udp", "raw-udp has no completion channel");
    bad("send_bw -e --wait sleep", "leave out --wait");
    bad("send_bw -e -l 8 -Q 3", "no divisor");
    good("compare send_lat -e --local");
    assert_int_equal(options.num_transports, 1);
}

TEST(perf_options_parse__threads)
{
    good("write_bw");
    assert_int_equal(options.params.threads, 1);
    good("read_bw --threads 4 -e --verify host");
    assert_int_equal(options.params.threads, 4);
    good("send_lat --threads 1");
    bad("send_bw --threads 0", "--threads");
    bad("send_bw --threads 65", "expected a whole number from 1 to 64");
    bad("send_lat --threads 2", "latency tests have one thread");
    bad("send_bw --threads 2 -q 2", "leave out -q");
    bad("send_bw --threads 2 -b", "threads send one way");
    bad("send_bw --threads 2 --transport raw-udp", "raw-udp has one thread");
    bad("write_bw --threads 2 --transport tcp", "tcp has one thread an end");
    good("compare write_bw --threads 2 --local");
    assert_int_equal(options.num_transports, 1);
}

TEST(perf_options_parse__bidirectional)
{
    good("write_bw -b");
    assert_true(options.params.bidirectional);
    good("atomic_bw --bidirectional host");
    assert_true(options.params.bidirectional);
    good("send_bw");
    assert_false(options.params.bidirectional);
    bad("read_lat -b", "read_lat takes turns");
    good("send_bw -b --transport raw-udp");
    bad("compare write_bw -b --transports mrd-udp,tcp --local", "tcp has one sender at a time");
    good("compare write_bw -b --local");
    assert_int_equal(options.num_transports, 2);
    assert_string_equal(options.transports[0], "mrd-udp");
    assert_string_equal(options.transports[1], "raw-udp");
}
