/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening and closing a context, and what the environment and bad attributes do. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tests/support/ports.h"
#include "tests/unit/context_fixture.h"

TEST(mrd_get_device_list__udp_first_and_contexts_outlive_it)
{
    int n = 0;
    struct mrd_device **list = mrd_get_device_list(&n);

    assert_non_null(list);
    assert_true(n >= 1);
    assert_null(list[n]);
    assert_string_equal(mrd_get_device_name(list[0]), "udp");

    struct mrd_context *context = mrd_open_device(list[0], NULL);

    assert_non_null(context);
    mrd_free_device_list(list);
    assert_string_equal(mrd_get_device_name(context->device), "udp");
    assert_int_equal(mrd_close_device(context), 0);
}

TEST(mrd_open_device__unknown_transport)
{
    const struct mrd_device device = {.name = "pigeon0", .transport = "pigeon"};

    refused(mrd_open_device(&device, NULL), EINVAL, "pigeon");
}

TEST(mrd_open_device__bad_attributes)
{
    static const uint16_t zero_port[] = {50001, 0}, twice[] = {50001, 50002, 50001};
    const struct {
        struct mrd_context_attr attr;
        const char *said; /* part of the sentence */
    } cases[] = {
        {{.comp_mask = 1ull << 40}, "comp_mask"},
        {{.paths = 257}, "paths 257"},
        {{.mtu = 1000}, "mtu 1000"},
        {{.mtu = 192}, "mtu 192"},
        {{.mtu = 16448}, "mtu 16448"},
        {{.spray = "zigzag"}, "zigzag"},
        {{.cc = "hope"}, "hope"},
        {{.num_source_ports = 2}, "source_ports"},
        {{.source_ports = zero_port, .num_source_ports = 2}, "source_ports[1]"},
        {{.source_ports = twice, .num_source_ports = 3}, "50001"},
        {{.source_ports = twice, .num_source_ports = 2, .paths = 3}, "paths 3"},
        {{.max_peers = (1u << 20) + 1}, "max_peers 1048577: at most 1048576"},
        {{.max_flows = (1u << 24) + 1}, "max_flows 16777217: at most 16777216"},
        {{.peer_timeout_ns = 5}, "peer_timeout_ns"},
        {{.challenge_ns = UINT64_MAX}, "challenge_ns"},
        {{.progress = (enum mrd_progress)9}, "progress"},
        {{.threading = (enum mrd_threading)9}, "threading"},
        {{.check = (enum mrd_check)9}, "check"},
        {{.rx_drop_ppm = 1000001}, "rx_drop_ppm"},
        {{.entropy = "flow label"}, "entropy"},
        {{.entropy = "qp"}, "entropy"},
        {{.port_num = 1}, "port_num"},
        {{.gid_index = 1}, "gid_index"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refused(open_local(&cases[i].attr), EINVAL, cases[i].said);
}

/* What is in force in the context, which is closed. */
static struct mrd_context_info info_of(struct mrd_context *context)
{
    assert_non_null(context);
    struct mrd_context_info info = context_info(context);

    assert_int_equal(mrd_close_device(context), 0);
    return info;
}

TEST(mrd_open_device__environment_where_attr_is_default)
{
    setenv("MRD_PATHS", "5", 1);
    setenv("MRD_SPRAY", "rr", 1);
    setenv("MRD_CC", "dctcp", 1);
    setenv("MRD_CHECK", "off", 1);

    struct mrd_context_info info = info_of(open_local(NULL));

    assert_int_equal(info.paths, 5);
    assert_string_equal(info.spray, "rr");
    assert_string_equal(info.cc, "dctcp");
    assert_int_equal(info.check, MRD_CHECK_OFF);
    info = info_of(open_local(&(struct mrd_context_attr){
        .paths = 3, .spray = "reps", .cc = "none", .check = MRD_CHECK_ON}));
    assert_int_equal(info.paths, 3);
    assert_string_equal(info.spray, "reps");
    assert_string_equal(info.cc, "none");
    assert_int_equal(info.check, MRD_CHECK_ON);

    unsetenv("MRD_PATHS");
    unsetenv("MRD_SPRAY");
    unsetenv("MRD_CC");
    unsetenv("MRD_CHECK");
    assert_int_equal(info_of(open_local(NULL)).check, MRD_CHECK_ON);
}

/* Where the program leaves it open, the environment says where the context is. */
TEST(mrd_open_device__place_by_environment)
{
    char address[MRD_ADDRESS_MAX];
    uint16_t port = test_port_apart();

    setenv("MRD_ADDRESS", "127.0.0.3", 1);
    setenv("MRD_MTU", "1024", 1);
    setenv("MRD_DEVICE", "udp", 1);
    struct mrd_context *context = mrd_open_device(NULL, NULL);
    assert_non_null(context);
    assert_int_equal(mrd_query_address(context, address, sizeof(address)), 0);
    assert_int_equal(strncmp(address, "127.0.0.3:", 10), 0);
    assert_int_equal(context_info(context).mtu, 1024);
    assert_int_equal(mrd_close_device(context), 0);

    /* What the program asks for counts. */
    snprintf(address, sizeof(address), "%u", port);
    setenv("MRD_PORT", address, 1);
    context = open_local(&(struct mrd_context_attr){.mtu = 512});
    assert_non_null(context);
    assert_int_equal(context_info(context).port, port);
    assert_int_equal(context_info(context).mtu, 512);
    assert_int_equal(mrd_query_address(context, address, sizeof(address)), 0);
    assert_int_equal(strncmp(address, "127.0.0.1:", 10), 0);
    unsetenv("MRD_PORT");
    assert_int_equal(mrd_close_device(context), 0);

    setenv("MRD_SOURCE_PORTS", "21003-21009", 1);
    assert_int_equal(info_of(open_local(NULL)).paths, 7);
    context = open_local(
        &(struct mrd_context_attr){.source_ports = (uint16_t[]){21020}, .num_source_ports = 1});
    assert_int_equal(info_of(context).paths, 1);

    setenv("MRD_DEVICE", "pigeon0", 1);
    refused(mrd_open_device(NULL, NULL), ENODEV, "MRD_DEVICE=pigeon0");
    unsetenv("MRD_ADDRESS");
    unsetenv("MRD_MTU");
    unsetenv("MRD_DEVICE");
    unsetenv("MRD_SOURCE_PORTS");
}

TEST(mrd_open_device__bad_environment)
{
    static const struct {
        const char *name, *value;
    } cases[] = {
        {"MRD_PATHS", "0"},
        {"MRD_PATHS", "257"},
        {"MRD_PATHS", "8x"},
        {"MRD_PATHS", "-1"},
        {"MRD_PATHS", " 8"},
        {"MRD_PATHS", "99999999999999999999"},
        {"MRD_SPRAY", "ADAPTIVE"},
        {"MRD_CC", "nscc "},
        {"MRD_LOG", "loud"},
        {"MRD_PORT", "0"},
        {"MRD_PORT", "65536"},
        {"MRD_MTU", "16385"},
        {"MRD_CHECK", "maybe"},
        {"MRD_ECN", "ECT"},
        {"MRD_SOURCE_PORTS", "9"},
        {"MRD_SOURCE_PORTS", "9-8"},
        {"MRD_SOURCE_PORTS", "1-65536"},
        {"MRD_SOURCE_PORTS", "1-257"},
        {"MRD_SOURCE_PORTS", "0-8"},
        {"MRD_SOURCE_PORTS", "1-8,"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        setenv(cases[i].name, cases[i].value, 1);
        refused(open_local(NULL), EINVAL, cases[i].name);
        unsetenv(cases[i].name);
    }
}

static void count_message(void *arg, enum mrd_log_level level, const char *message)
{
    int *count = arg;

    assert_true(message[0]);
    count[level]++;
}

/* The application's function wins over the environment, and gets no more than its level. */
TEST(mrd_set_log__levels)
{
    int count[4] = {0};

    setenv("MRD_LOG", "debug", 1);
    mrd_set_log(count_message, count, MRD_LOG_ERROR);
    info_of(open_local(NULL));
    assert_null(open_local(&(struct mrd_context_attr){.paths = 257}));
    assert_int_equal(count[MRD_LOG_ERROR], 1);
    assert_int_equal(count[MRD_LOG_INFO], 0);

    mrd_set_log(count_message, count, MRD_LOG_INFO);
    info_of(open_local(NULL));
    assert_true(count[MRD_LOG_INFO] > 0);

    mrd_set_log(NULL, NULL, MRD_LOG_ERROR);
    assert_null(open_local(&(struct mrd_context_attr){.paths = 257}));
    assert_int_equal(count[MRD_LOG_ERROR], 1);
    unsetenv("MRD_LOG");
}

TEST(mrd_close_device__busy_until_objects_are_gone)
{
    struct mrd_context *context = open_local(NULL);

    assert_non_null(context);

    struct mrd_pd *pd = mrd_alloc_pd(context);
    struct mrd_cq *cq = mrd_create_cq(context, 4, NULL);

    assert_non_null(pd);
    assert_non_null(cq);
    assert_int_equal(mrd_close_device(context), -EBUSY);
    assert_non_null(strstr(mrd_last_error(), "2 objects"));
    assert_int_equal(mrd_destroy_cq(cq), 0);
    assert_int_equal(mrd_close_device(context), -EBUSY);
    assert_int_equal(mrd_dealloc_pd(pd), 0);
    assert_int_equal(mrd_close_device(context), 0);
}

/* Opened and closed over and over, with its thread asleep, it leaves no descriptor behind. */
TEST(mrd_close_device__releases_descriptors)
{
    struct mrd_context *context = open_local(NULL);
    struct mrd_pd *pd;

    assert_non_null(context);
    int first = dup(0);

    close(first);
    assert_int_equal(mrd_close_device(context), 0);
    for (int i = 0; i < 30; i++) {
        context = open_local(NULL);
        assert_non_null(context);
        pd = mrd_alloc_pd(context);
        assert_int_equal(mrd_dealloc_pd(pd), 0);
        int now = dup(0);

        close(now);
        assert_int_equal(now, first);
        assert_int_equal(mrd_close_device(context), 0);
    }
}

/* Manual progress: no thread, an idle context has no deadline, and a step finds nothing. */
TEST_F_WITH(local, mrd_progress__manual_and_idle, self->attr.progress = MRD_PROGRESS_MANUAL)
{
    struct pollfd fd = {.fd = mrd_context_fd(self->context), .events = POLLIN};

    assert_true(fd.fd >= 0);
    assert_int_equal(poll(&fd, 1, 0), 0);
    assert_int_equal(mrd_progress(self->context), 0);
    assert_true(mrd_next_timeout_ns(self->context) == UINT64_MAX);
}

/* In a forked child every call fails, and the parent goes on. */
static void use_after_fork(enum mrd_threading threading)
{
    struct mrd_context *context = open_local(&(struct mrd_context_attr){.threading = threading});

    assert_non_null(context);

    struct mrd_cq *cq = mrd_create_cq(context, 4, NULL);
    struct mrd_wc wc;
    char address[MRD_ADDRESS_MAX];

    assert_non_null(cq);

    pid_t child = fork();

    assert_true(child >= 0);
    if (!child) {
        bool ok = mrd_poll_cq(cq, 1, &wc) == -EPERM && mrd_progress(context) == -EPERM &&
                  mrd_query_address(context, address, sizeof(address)) == -EPERM &&
                  !mrd_alloc_pd(context) && errno == EPERM && mrd_close_device(context) == -EPERM &&
                  strstr(mrd_last_error(), "fork");

        _exit(ok ? 0 : 1);
    }

    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(mrd_poll_cq(cq, 1, &wc), 0);
    assert_int_equal(mrd_destroy_cq(cq), 0);
    assert_int_equal(mrd_close_device(context), 0);
}

TEST(mrd_context__use_after_fork)
{
    use_after_fork(MRD_THREADING_MULTI);
    use_after_fork(MRD_THREADING_SINGLE);
}

int kit_before_all(void)
{
    unsetenv("MRD_LOG");
    unsetenv("MRD_PATHS");
    unsetenv("MRD_SPRAY");
    unsetenv("MRD_CC");
    return 0;
}
