/* SPDX-License-Identifier: BSD-2-Clause */
/* mrd_perf scale: its words, and the network in which one context is many peers. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tests/unit/perf_cli.h"
#include "tools/perf/scale.h"

TEST(perf_scale_take__defaults)
{
    good("scale");
    assert_true(options.scale);
    assert_int_equal(options.num_scale_peers, 5);
    assert_int_equal(options.scale_peers[0], 10);
    assert_int_equal(options.scale_peers[4], 1000000);
    assert_int_equal(options.params.size_bytes, 64);
    assert_int_equal(scale_depth(&options), 128);
}

TEST(perf_scale_take__words)
{
    good("scale 20 300 -s 8 -t 16 -D 3 --paths 4");
    assert_int_equal(options.num_scale_peers, 2);
    assert_int_equal(options.scale_peers[0], 20);
    assert_int_equal(options.scale_peers[1], 300);
    assert_int_equal(options.params.size_bytes, 8);
    assert_int_equal(options.params.duration_s, 3);
    assert_int_equal(options.params.paths, 4);
    assert_int_equal(scale_depth(&options), 16);
    good("scale 1 64 -s 64K --write_with_imm");
    assert_int_equal(options.scale_peers[0], 1);
    assert_int_equal(options.params.size_bytes, 65536);
    assert_true(options.params.write_with_imm);
    assert_false(options.scale_contexts);
    good("scale 256 --contexts");
    assert_true(options.scale_contexts);
}

TEST(perf_scale_take__bad)
{
    bad("scale 0", "'0' is not a number of peers within 1..1000000");
    bad("scale 1000001", "'1000001'");
    bad("scale 10x", "'10x'");
    bad("scale -- -10", "'-10'");
    bad("scale 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10 10", "at most 16");
}

TEST(perf_scale_check__conflicts)
{
    bad("scale --local", "--local is of");
    bad("scale --forever", "--forever is of");
    bad("scale --run_infinitely", "--run_infinitely");
    bad("scale --transport tcp", "--transport is of");
    bad("scale --transports tcp", "--transports is of");
    bad("scale --peers 100", "--peers is of state");
    bad("scale --source-ports 1000-1003", "--source-ports is of");
    bad("scale -d a,b", "one device");
    bad("scale -a", "--all is of");
    bad("scale -s 0", "1..65536");
    bad("scale -s 65537", "1..65536");
    bad("scale -n 100", "--iters is of");
    bad("scale 10 257 --contexts", "at most 256 peers, not 257");
    bad("scale --contexts", "not 1000");
    bad("write_bw --local --contexts", "--contexts is of scale");
    bad("scale --spray sideways", "adaptive");
}

enum { CHILD_GOOD = 0, CHILD_WRONG = 1, CHILD_SKIPS = 77 };

static int open_any(struct sockaddr_in *at)
{
    socklen_t len = sizeof(*at);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    *at = (struct sockaddr_in){.sin_family = AF_INET};
    if (fd < 0 || bind(fd, (struct sockaddr *)at, len) ||
        getsockname(fd, (struct sockaddr *)at, &len))
        _exit(CHILD_WRONG);
    return fd;
}

/* A datagram to any address of 10.0.0.0/8 arrives, and comes from that address. */
static int send_to_many(void)
{
    static const char *const addresses[] = {"10.1.0.0", "10.1.0.255", "10.1.255.255",
                                            "10.16.66.63"};
    struct sockaddr_in to, from, unused;
    int receiver = open_any(&to), sender = open_any(&unused);
    char byte;

    for (unsigned i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        socklen_t len = sizeof(from);
        to.sin_addr.s_addr = inet_addr(addresses[i]);
        if (sendto(sender, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)) != 1 ||
            recvfrom(receiver, &byte, 1, MSG_DONTWAIT, (struct sockaddr *)&from, &len) != 1 ||
            from.sin_addr.s_addr != to.sin_addr.s_addr)
            return CHILD_WRONG;
    }
    return CHILD_GOOD;
}

TEST(scale_own_network__source_is_destination)
{
    int status;

    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (scale_own_network(error) == 0)
            _exit(send_to_many());
        fprintf(stderr, "%s\n", error);
        _exit(CHILD_SKIPS);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CHILD_SKIPS)
        skip();
    assert_int_equal(WEXITSTATUS(status), CHILD_GOOD);
}
