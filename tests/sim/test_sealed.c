/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts with key files, on networks that lose, double, change and repeat packets. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/rng.h"
#include "tests/support/world.h"

#define KEY_A "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define KEY_B "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

enum { PATH = 256, CAPTURE_MAX = 4000, LEN_MAX = 9000, MESSAGE_BYTES = 100000 };

struct captured {
    uint32_t from, to, len;
    uint8_t data[LEN_MAX];
};

FIXTURE(keys)
{
    char directory[PATH], file[2][PATH + 8];
    struct sim_world *w;
    struct captured *capture; /* owned */
    uint32_t num;
};

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(chmod(path, 0600), 0);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

FIXTURE_SETUP(keys)
{
    snprintf(self->directory, sizeof(self->directory), "%s/mrd-sealed-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(self->directory));
    for (unsigned i = 0; i < 2; i++) {
        snprintf(self->file[i], sizeof(self->file[i]), "%s/%u", self->directory, i);
        put(self->file[i], "key 1 " KEY_A "\n");
    }
}

FIXTURE_TEARDOWN(keys)
{
    for (unsigned i = 0; i < 2; i++)
        unlink(self->file[i]);
    rmdir(self->directory);
    free(self->capture);
}

/* Hosts with these options; `one`: what the second one has as its key file. */
static struct sim_world *begin(struct keys *f, struct sim_options o, const char *one)
{
    o.key_file = f->file[0];
    o.key_file_1 = one;
    if (!o.peer_timeout_ns)
        o.peer_timeout_ns = 100 * MSEC_NS;
    f->w = sim_fabric_world(&o);
    return f->w;
}

static struct mrd_context_info info_of(struct sim_world *w, uint32_t host)
{
    struct mrd_context_info info;

    assert_int_equal(mrd_query_context(w->node[host].context, &info, sizeof(info)), 0);
    return info;
}

TEST_F(keys, sim_sealed__all_that_a_network_does)
{
    static const char *const ciphers[] = {"aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"};

    for (size_t i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++) {
        char text[200];
        struct sim_options o = {.loss_ppm = 10000,
                                .duplicate_ppm = 10000,
                                .corrupt_ppm = 10000,
                                .jitter_ns = 20 * USEC_NS,
                                .straight = true,
                                .mtu = 4096,
                                .recv_bytes = MESSAGE_BYTES,
                                .seed = test_seed() + i};

        snprintf(text, sizeof(text), "cipher %s\nkey 1 " KEY_A "\n", ciphers[i]);
        put(self->file[0], text);
        struct sim_world *w = begin(self, o, NULL);

        for (unsigned k = 0; k < 10; k++) {
            sim_send(w, HOST_0, HOST_1, MESSAGE_BYTES);
            sim_write(w, HOST_1, HOST_0, MESSAGE_BYTES);
            sim_write_imm(w, HOST_0, HOST_1, 100);
            sim_post(w, &(struct sim_post){.from = HOST_1,
                                           .to = HOST_0,
                                           .len = MESSAGE_BYTES,
                                           .opcode = MRD_WR_RDMA_READ});
        }
        sim_run_until_complete(w, SEC_NS);
        assert_true(sim_payload_equal(w, HOST_1));
        assert_int_equal(info_of(w, HOST_0).mtu, 4096 - 64);
        assert_true(strncasecmp(info_of(w, HOST_0).cipher, ciphers[i], strlen(ciphers[i])) == 0);
        for (uint32_t host = 0; host < 2; host++) {
            assert_true(sim_counter(w, host, "rx_opened") > 200);
            assert_true(sim_counter(w, host, "rx_drop_tag") > 0);
            assert_true(sim_counter(w, host, "rx_drop_replay") > 0);
            assert_int_equal(sim_counter(w, host, "rx_drop_checksum"), 0);
            assert_int_equal(sim_counter(w, host, "rx_straight"), 0);
            assert_true(sim_counter(w, host, "seal_keys_derived") < 20);
        }
    }
}

static void expect_doubt(struct sim_world *w, uint32_t host, const char *text)
{
    char buf[300];

    if (text) {
        assert_int_equal(mrd_query_doubt(w->node[host].ah[!host], buf, sizeof(buf)), 0);
        assert_non_null(strstr(buf, text));
        assert_int_equal(mrd_query_doubt(w->node[host].ah[!host], buf, 3), -ENOSPC);
    } else {
        assert_int_equal(mrd_query_doubt(w->node[host].ah[!host], buf, sizeof(buf)), -ENOENT);
    }
}

/* Whoever has other keys, or none, reaches nobody, leaves no trace, and learns why as far as it may. */
TEST_F(keys, sim_sealed__others_get_nothing)
{
    static const struct {
        const char *file; /* of host 1; NULL: it has none */
        const char *doubt,
            *doubt1;         /* at host 0 and at host 1, when both have asked; NULL: no sign */
        const char *counter; /* at host 0: of packets dropped */
    } table[] = {
        {NULL, "not sealed", NULL, "rx_drop_clear"},
        {"key 2 " KEY_A, "another key: key 2 is not in", "another key: key 1 is not in",
         "rx_drop_key"},
        {"key 1 " KEY_B, "its key 1 is not that of", "its key 1 is not that of", "rx_drop_tag"},
        {"cipher aes-256-gcm\nkey 1 " KEY_A, "or another cipher", "or another cipher",
         "rx_drop_tag"},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].file)
            put(self->file[1], table[i].file);
        struct sim_world *w =
            begin(self, (struct sim_options){0}, table[i].file ? self->file[1] : "");
        uint32_t there = sim_write(w, HOST_0, HOST_1, 1000),
                 back = sim_send(w, HOST_1, HOST_0, 100);

        sim_run(w, 300 * MSEC_NS);
        sim_expect_sent(w, there, MRD_WC_RETRY_EXC_ERR);
        sim_expect_sent(w, back, MRD_WC_RETRY_EXC_ERR);
        expect_doubt(w, HOST_0, table[i].doubt);
        expect_doubt(w, HOST_1, table[i].doubt1);
        assert_true(sim_counter(w, HOST_0, table[i].counter) > 0);
        for (uint32_t host = 0; host < 2; host++) {
            assert_int_equal(sim_counter(w, host, "rx_packets"), 0);
            assert_int_equal(sim_counter(w, host, "rx_opened"), 0);
        }
        if (!table[i].file)
            assert_true(sim_counter(w, HOST_1, "rx_drop_sealed") > 0);
    }
}

static int reload(struct sim_world *w, uint32_t host)
{
    return mrd_reload_keys(w->node[host].context);
}

static void pass(struct sim_world *w)
{
    sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    sim_write_complete(w, HOST_1, HOST_0, MESSAGE_BYTES, 20 * MSEC_NS);
}

/* Both ends read their files again, at different times: nothing is lost, and no context is opened again. */
TEST_F(keys, sim_sealed__rotation)
{
    static const char *const steps[][2] = {
        {"key 1 " KEY_A "\nkey 2 " KEY_B, "key 1 " KEY_A},
        {"key 1 " KEY_A "\nkey 2 " KEY_B, "key 2 " KEY_B "\nkey 1 " KEY_A},
        {"key 2 " KEY_B "\nkey 1 " KEY_A, "key 2 " KEY_B "\nkey 1 " KEY_A},
        {"key 2 " KEY_B, "key 2 " KEY_B "\nkey 1 " KEY_A},
        {"key 2 " KEY_B, "key 2 " KEY_B},
    };
    struct sim_world *w = begin(self, (struct sim_options){0}, self->file[1]);

    pass(w);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        for (uint32_t host = 0; host < 2; host++) {
            put(self->file[host], steps[i][host]);
            assert_int_equal(reload(w, host), 0);
        }
        pass(w);
    }
    sim_expect_no_losses(w);
    assert_int_equal(sim_counter(w, HOST_0, "rx_drop_key"), 0);
    assert_int_equal(sim_counter(w, HOST_1, "rx_drop_tag"), 0);
}

/* A file that is wrong changes nothing. */
TEST_F(keys, sim_sealed__reload_fails)
{
    struct sim_world *w = begin(self, (struct sim_options){.hosts = 2}, NULL);

    pass(w);
    put(self->file[0], "key 1 nonsense\n");
    assert_int_equal(reload(w, HOST_0), -EINVAL);
    assert_non_null(strstr(mrd_last_error(), "line 1"));
    put(self->file[0], "cipher aes-256-gcm\nkey 2 " KEY_B "\n");
    assert_int_equal(reload(w, HOST_0), -EINVAL);
    assert_non_null(strstr(mrd_last_error(), "another cipher"));
    assert_int_equal(chmod(self->file[0], 0644), 0);
    assert_int_equal(reload(w, HOST_0), -EPERM);
    assert_int_equal(unlink(self->file[0]), 0);
    assert_int_equal(reload(w, HOST_0), -ENOENT);
    pass(w);
    sim_expect_no_losses(w);

    struct sim_world *clear = sim_fabric_world(&(struct sim_options){.key_file = ""});

    assert_int_equal(reload(clear, HOST_0), -EINVAL);
    assert_non_null(strstr(mrd_last_error(), "no key file"));
}

/* Restarts of both, and after each a message of both. How many end otherwise than with success. */
static uint32_t restarts(struct sim_world *w)
{
    uint32_t failed = 0;

    pass(w);
    for (unsigned i = 0; i < 6; i++) {
        sim_restart(w, i % 2 ? HOST_0 : HOST_1);
        for (unsigned k = 0; k < 4; k++) {
            uint32_t from = (i / 2 + k) % 2, message = sim_send(w, from, !from, 1000);
            uint64_t before = sim_counter(w, !from, "rx_messages");
            bool done;

            sim_run(w, 60 * MSEC_NS);
            done = w->messages[message].sent && w->messages[message].status == MRD_WC_SUCCESS;
            assert_int_equal(sim_counter(w, !from, "rx_messages"), before + done);
            assert_true(done || k < 2);
            failed += !done;
        }
    }
    return failed;
}

/* Work for a life that is over ends as it does in the clear, and the next life is found. */
TEST_F(keys, sim_sealed__restart)
{
    uint32_t failed = restarts(begin(self, (struct sim_options){0}, NULL));

    assert_int_equal(failed, restarts(sim_fabric_world(&(struct sim_options){
                                 .key_file = "", .peer_timeout_ns = 100 * MSEC_NS})));
}

/* ------------------------------------------------------------------------------------- strangers */

static enum mrd_sim_verdict keep(void *arg, struct mrd_sim_datagram *d)
{
    struct keys *f = arg;

    if (f->num < CAPTURE_MAX && d->len <= LEN_MAX) {
        struct captured *c = &f->capture[f->num++];

        *c = (struct captured){.from = d->from, .to = d->to, .len = d->len};
        memcpy(c->data, d->data, d->len);
    }
    return MRD_SIM_PASS;
}

static void replay(struct keys *f)
{
    for (uint32_t i = 0; i < f->num; i++) {
        const struct captured *c = &f->capture[i];

        assert_int_equal(mrd_sim_inject(f->w->sim, c->from, c->to, c->data, c->len,
                                        mrd_sim_now(f->w->sim) + 100 * i),
                         0);
    }
    sim_run(f->w, 10 * MSEC_NS);
}

/* All that was sent comes again: soon, after a long silence, and to hosts that were opened again. */
TEST_F(keys, sim_sealed__replay)
{
    self->capture = calloc(CAPTURE_MAX, sizeof(*self->capture));
    struct sim_world *w = begin(self, (struct sim_options){.recv_bytes = 4096}, NULL);

    mrd_sim_set_tap(w->sim, keep, self);
    pass(w);
    for (unsigned i = 0; i < 20; i++)
        sim_send_complete(w, HOST_0, HOST_1, 1000, 20 * MSEC_NS);
    sim_run(w, 10 * MSEC_NS);
    mrd_sim_set_tap(w->sim, NULL, NULL);
    assert_in_range(self->num, 50, CAPTURE_MAX - 1);
    sim_post_recvs(w, HOST_1, 0, 100, 4096);
    for (unsigned turn = 0; turn < 4; turn++) {
        if (turn == 1)
            sim_run(w, 40 * SEC_NS);
        if (turn == 2)
            sim_restart(w, HOST_1);
        if (turn == 3)
            sim_close(w, HOST_0);
        uint64_t messages = sim_counter(w, HOST_1, "rx_messages"),
                 packets = sim_counter(w, HOST_1, "rx_packets"),
                 bytes = sim_counter(w, HOST_1, "rx_bytes"),
                 peers = sim_counter(w, HOST_1, "peers");

        memset(w->node[HOST_1].arena, 0x5a, 1000); /* a write that is executed again would show */
        replay(self);
        assert_int_equal(sim_counter(w, HOST_1, "rx_messages"), messages);
        assert_int_equal(sim_counter(w, HOST_1, "rx_packets"), packets);
        assert_int_equal(sim_counter(w, HOST_1, "rx_bytes"), bytes);
        assert_int_equal(sim_counter(w, HOST_1, "peers"), peers);
        for (unsigned i = 0; i < 1000; i++)
            assert_int_equal(w->node[HOST_1].arena[i], 0x5a);
    }
}

/* Garbage, and packets of which bits were changed, amid a transfer: it does not notice. */
TEST_F(keys, sim_sealed__forged)
{
    self->capture = calloc(CAPTURE_MAX, sizeof(*self->capture));
    struct sim_world *w = begin(self, (struct sim_options){0}, NULL);
    struct mrd_rng rng;

    mrd_rng_init(&rng, test_seed());
    mrd_sim_set_tap(w->sim, keep, self);
    pass(w);
    mrd_sim_set_tap(w->sim, NULL, NULL);
    uint64_t opened = sim_counter(w, HOST_1, "rx_opened"), strangers = 0;

    sim_write(w, HOST_0, HOST_1, 10 * MESSAGE_BYTES);
    for (unsigned i = 0; i < 20000; i++) {
        struct captured c = self->capture[mrd_rng_below(&rng, self->num)];
        uint32_t flips = 1 + mrd_rng_below(&rng, 20);

        for (uint32_t k = 0; k < flips; k++)
            c.data[mrd_rng_below(&rng, mrd_rng_below(&rng, 2) ? 40 : c.len)] ^=
                (uint8_t)(1 + mrd_rng_below(&rng, 255));
        if (mrd_rng_below(&rng, 4) == 0)
            c.len = 1 + mrd_rng_below(&rng, c.len);
        assert_int_equal(
            mrd_sim_inject(w->sim, c.from, HOST_1, c.data, c.len, mrd_sim_now(w->sim) + i * 50), 0);
    }
    sim_run_until_complete(w, SEC_NS);
    sim_run(w, 10 * MSEC_NS);
    assert_true(sim_payload_equal(w, HOST_1));
    sim_expect_no_losses(w);
    strangers = sim_counter(w, HOST_1, "rx_drop_clear") + sim_counter(w, HOST_1, "rx_drop_key") +
                sim_counter(w, HOST_1, "rx_drop_tag") + sim_counter(w, HOST_1, "rx_drop_replay") +
                sim_counter(w, HOST_1, "rx_drop_stranger");
    assert_true(strangers >= 20000);
    assert_in_range(sim_counter(w, HOST_1, "rx_opened") - opened, 1, 2000);
    assert_int_equal(sim_counter(w, HOST_1, "peers"), 1);
}

/* --------------------------------------------------------------------------------------- memory */

/* Regions of this process with all of these flags in /proc/self/smaps. */
static unsigned regions_with(const char *first, const char *second)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned num = 0;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        num += strncmp(line, "VmFlags:", 8) == 0 && strstr(line, first) && strstr(line, second);
    fclose(f);
    return num;
}

/* Keys are in no core dump, and a child of fork() has none of them. */
TEST_F(keys, sim_sealed__memory)
{
    unsigned before = regions_with(" dd", " wf");
    struct sim_world *w = begin(self, (struct sim_options){0}, NULL);

    pass(w);
    assert_true(regions_with(" dd", " wf") >= before + 4);
    pid_t child = fork();

    if (!child)
        _exit(mrd_reload_keys(w->node[HOST_0].context) == -EPERM ? 0 : 1);
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pass(w);
}

/* Files that cannot be used: no context, and a sentence that names the file. */
TEST_F(keys, mrd_open_device__key_files)
{
    static const struct {
        const char *text;
        mode_t mode;
        const char *error;
    } table[] = {{"", 0600, "no key"},
                 {"key 1 " KEY_A, 0640, "chmod 600"},
                 {"key 1 short", 0600, "line 1"},
                 {"cipher rot13\nkey 1 " KEY_A, 0600, "aes-128-gcm"}};
    struct sim_world *w = begin(self, (struct sim_options){.hosts = 3}, NULL);

    sim_close(w, HOST_1);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        put(self->file[1], table[i].text);
        assert_int_equal(chmod(self->file[1], table[i].mode), 0);
        assert_null(mrd_open_device(mrd_sim_device(w->sim, HOST_1),
                                    &(struct mrd_context_attr){.key_file = self->file[1]}));
        assert_non_null(strstr(mrd_last_error(), table[i].error));
        assert_non_null(strstr(mrd_last_error(), self->file[1]));
    }
}
