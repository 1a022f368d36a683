/* SPDX-License-Identifier: BSD-2-Clause */
/* What mrd_perf makes of devices, ports and MTUs of RDMA. None need be there. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/perf_cli.h"
#include "tools/perf/ibv_device.h"
#include "tools/perf/state.h"

/* RDMA transports: taken where the program has them, else refused with the reason. */
static void rdma_good(const char *line)
{
    if (perf_ibv_missing())
        bad(line, perf_ibv_missing());
    else
        good(line);
}

static void rdma_bad(const char *line, const char *cause)
{
    bad(line, perf_ibv_missing() ? perf_ibv_missing() : cause);
}

/* The device decides on the transport; what is given to the server is its own affair. */
TEST(perf_options_parse__rdma_device)
{
    rdma_good("write_bw -d rxe0 --entropy qpair -x 3 -i 2 host");
    assert_string_equal(options.params.transport, "mrd-ibv");
    assert_string_equal(options.device, "rxe0");
    assert_string_equal(options.params.entropy, "qpair");
    assert_int_equal(options.gid_index, 3);
    assert_int_equal(options.ib_port, 2);
    good("write_bw host");
    assert_int_equal(options.gid_index, -1);
    assert_int_equal(options.ib_port, 0);
    good("write_bw -d udp");
    assert_string_equal(options.params.transport, "mrd-udp");
    rdma_good("send_lat --transport raw-ud --local");
    assert_string_equal(options.device, "");
    rdma_good("write_bw --transport rc -d mlx5_0 --gid-index 0 --ib-port 1 host");
    assert_string_equal(options.params.transport, "rc");
    good("write_bw -x 3"); /* a server: its client chooses the transport */
}

/* With --local the first device is the server's, as the server of two commands is started first. */
TEST(perf_options_parse__two_devices)
{
    rdma_good("write_bw --local --transport rc -d rxe0,rxe1");
    assert_string_equal(options.server_device, "rxe0");
    assert_string_equal(options.device, "rxe1");
    rdma_good("write_bw --local --transport rc -d rxe0");
    assert_string_equal(options.server_device, "rxe0");
    assert_string_equal(options.device, "rxe0");
    bad("write_bw -d rxe0,rxe1 host", "--local");
    bad("write_bw -d rxe0, --local", "-d");
    bad("write_bw -d ,rxe0 --local", "-d");
    bad("write_bw -d udp,rxe0 --local", "of a kind");
}

TEST(perf_options_parse__device_conflicts)
{
    bad("write_bw --transport mrd-udp -d rxe0", "-d rxe0 conflicts with --transport mrd-udp");
    bad("write_bw --transport tcp -d rxe0", "uses no RDMA device");
    rdma_bad("write_bw --transport mrd-ibv -d udp", "which -d udp is not");
    rdma_bad("write_bw --transport rc -d udp", "which -d udp is not");
    rdma_bad("write_bw --transport rc --source-ports 1-2 --local", "--source-ports");
    rdma_bad("write_bw --transport rc --entropy ah --local", "--entropy");
    rdma_bad("write_bw --transport raw-ud -s 0 --local", "0 bytes");
    bad("write_bw -x 3 --local", "-x");
    bad("write_bw -i 1 host", "-x and -i");
    bad("write_bw --entropy ah host", "--entropy");
    bad("write_bw -x 65536", "65535");
    bad("write_bw -i 0", "-i");
    bad("write_bw --entropy dice -d rxe0 --local", "auto, ah, qp or qpair");
}

/* Payload over sockets, a path MTU over RDMA devices. */
TEST(perf_options_parse__mtu)
{
    good("write_bw -m 1472 --local");
    good("write_bw -m 8192 --local");
    rdma_good("write_bw -m 4096 -d rxe0 --local");
    rdma_good("write_bw -m 256 --transport rc --local");
    rdma_bad("write_bw -m 8192 -d rxe0 --local", "512, 1024, 2048, 4096");
    rdma_bad("write_bw -m 1472 --transport rc --local", "-m 1472");
    rdma_bad("write_bw -m 128 --transport raw-ud --local", "-m 128");
    rdma_bad("compare write_bw -m 1472 --transports mrd-udp,rc --local", "-m 1472");
    good("compare write_bw -m 1472 --transports mrd-udp,tcp --local");
}

/* -d speaks to the RDMA transports of a list, and chooses the list if there is none. */
TEST(perf_options_parse__compare_rdma)
{
    rdma_good("compare write_bw -d rxe0,rxe1 --local");
    assert_int_equal(options.num_transports, 3);
    assert_string_equal(options.transports[0], "mrd-ibv");
    assert_string_equal(options.transports[1], "rc");
    assert_string_equal(options.transports[2], "raw-ud");
    rdma_good("compare write_bw --transports mrd-ibv,rc,raw-ud,mrd-udp,raw-udp,tcp -d rxe0 host");
    assert_int_equal(options.num_transports, 6);
    rdma_bad("compare write_bw --transports rc,tcp -d udp host", "no RDMA device");
    bad("compare write_bw --transports tcp,mrd-udp -d rxe0 host", "the list has none");
    bad("compare write_bw --transports tcp -x 1 host", "the list has none");
}

/* state is about this end: the transports named, or those of the device that keep anything. */
TEST(perf_options_parse__state)
{
    good("state");
    assert_true(options.state);
    assert_int_equal(options.peers, 1000);
    assert_int_equal(options.num_transports, 2);
    assert_string_equal(options.transports[0], "mrd-udp");
    assert_string_equal(options.transports[1], "tcp");
    good("state --peers 64 tcp");
    assert_int_equal(options.peers, 64);
    assert_int_equal(options.num_transports, 1);
    rdma_good("state -d rxe0 -t 128");
    assert_string_equal(options.transports[0], "mrd-ibv");
    assert_string_equal(options.transports[1], "rc");
    rdma_good("state -d rxe0 rc mrd-udp");
    bad("state raw-udp", "keeps nothing");
    rdma_bad("state raw-ud -d rxe0", "keeps nothing");
    bad("state pigeon", "pigeon");
    bad("state tcp tcp", "twice");
    bad("state --transports a,b,c,d,e,f,g,h i", "'i' is not the name of a transport");
    bad("state --local", "--local is of TEST, compare and doctor");
    bad("state -d rxe0,rxe1", "this end alone");
    bad("state --peers 9", "--peers");
    bad("state tcp -d rxe0", "the list has none");
    bad("write_bw --peers 100", "--peers is of state");
}

/*
 * User memory is this process's own and can be told exactly: sockets have none, a context grows.
 * Kernel memory is the whole machine's, of which a test cannot say anything.
 */
TEST(perf_state_measure__tcp_and_mrd)
{
    struct perf_state_figures f;

    good("state tcp");
    assert_int_equal(perf_state_measure(&options, "tcp", 400, &f, error), 0);
    assert_true(f.user < 1000);
    assert_true(isnan(f.idle));
    assert_int_equal(perf_state_measure(&options, "mrd-udp", 100, &f, error), 0);
    assert_true(f.user > 1000 && f.user < 1e6);
    assert_false(isnan(f.idle));
    assert_int_equal(perf_state_measure(&options, "raw-udp", 100, &f, error), -ENOTSUP);
}

/* ---------------------------------------------------------------- path MTUs */

TEST(perf_ibv_mtu_payload__fits_with_headers)
{
    assert_int_equal(perf_ibv_mtu_payload(256), 128);
    assert_int_equal(perf_ibv_mtu_payload(1024), 896);
    assert_int_equal(perf_ibv_mtu_payload(4096), 3968);
}

/* The ports' own MTU if they agree, else a sentence that names both and the way out. */
TEST(perf_ibv_mtu_agree__table)
{
    static const struct {
        uint32_t given, here, there, mtu; /* mtu 0: refused */
    } rows[] = {
        {0, 1024, 1024, 1024},    {0, 4096, 1024, 0},       {0, 1024, 4096, 0},
        {1024, 4096, 1024, 1024}, {512, 1024, 4096, 512},   {2048, 4096, 1024, 0},
        {4096, 1024, 4096, 0},    {4096, 4096, 4096, 4096},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[PERF_ERROR_BYTES] = "", way[16];
        uint32_t mtu = 0;
        int rc = perf_ibv_mtu_agree(rows[i].given, "rxe0 at A", rows[i].here, "rxe1 at B",
                                    rows[i].there, &mtu, text);
        assert_int_equal(mtu, rows[i].mtu);
        assert_int_equal(rc == 0, rows[i].mtu != 0);
        if (rc == 0)
            continue;
        snprintf(way, sizeof(way), "-m %u",
                 rows[i].here < rows[i].there ? rows[i].here : rows[i].there);
        assert_non_null(strstr(text, "rxe0 at A has"));
        assert_non_null(strstr(text, "rxe1 at B has"));
        assert_non_null(strstr(text, way));
    }
}
