/* SPDX-License-Identifier: BSD-2-Clause */
/* The control connection of mrd_perf: messages in pieces, and what is none. */
#include <string.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tools/perf/control.h"
#include "tools/perf/message.h"

enum { PATIENCE_MS = 50 }; /* for what does not come */

static struct perf_control control;
static int other_end;

FIXTURE(connection){};

FIXTURE_SETUP(connection)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    control = (struct perf_control){.fd = fds[0], .tokener = json_tokener_new()};
    other_end = fds[1];
}

FIXTURE_TEARDOWN(connection)
{
    perf_control_close(&control);
    assert_int_equal(close(other_end), 0);
}

static void say(const char *text)
{
    assert_int_equal(write(other_end, text, strlen(text)), strlen(text));
}

static void expect_message(const char *type)
{
    struct json_object *message;

    assert_int_equal(perf_control_recv(&control, PATIENCE_MS, &message), 0);
    assert_true(perf_message_is(message, type));
    json_object_put(message);
}

static void expect_error(int rc)
{
    struct json_object *message;

    assert_int_equal(perf_control_recv(&control, PATIENCE_MS, &message), rc);
}

TEST_F(connection, perf_control_recv__pieces)
{
    say("{\"ty");
    expect_error(-ETIMEDOUT);
    say("pe\":\"go\"}");
    expect_message("go");
    say("\n"); /* late */
    expect_error(-ETIMEDOUT);
    say("{\"type\":\"met\"}\n{\"type\":\"do");
    expect_message("met");
    say("ne\"}\n");
    expect_message("done");
}

/* Whoever ends a line in mid-message will not go on with it: that is said at once. */
TEST_F(connection, perf_control_recv__half_line)
{
    say("{\"type\":");
    expect_error(-ETIMEDOUT);
    say("\n");
    expect_error(-EPROTO);
}

TEST_F(connection, perf_control_recv__no_message)
{
    say("[[[\n");
    expect_error(-EPROTO);
}

/* Both ends go on sending at the same pace where much is lost, whatever the system's default is. */
static void expect_linear_timeouts(int fd)
{
    char name[16] = "";
    int linear = 0;
    socklen_t len = sizeof(linear), name_len = sizeof(name);

    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &linear, &len), 0);
    assert_int_equal(linear, 1);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &name_len), 0);
    assert_string_equal(name, "reno");
}

TEST(perf_control_connect__linear_timeouts)
{
    struct perf_control client = {.fd = -1}, server = {.fd = -1};
    char error[PERF_ERROR_BYTES];
    uint16_t port = 0;

    int listener = perf_control_listen("127.0.0.1", &port, false, error);
    assert_true(listener >= 0);
    assert_int_equal(perf_control_connect(&client, "127.0.0.1", port, "", false, error), 0);
    assert_int_equal(perf_control_accept(&server, listener, error), 0);
    expect_linear_timeouts(client.fd);
    expect_linear_timeouts(server.fd);
    perf_control_close(&client);
    perf_control_close(&server);
    close(listener);
}
