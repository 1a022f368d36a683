/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and atomics over a fabric: rate, loss, pools that are full at both ends, restarts. */
#include <stdlib.h>
#include <string.h>

#include "core/engine/state.h"
#include "tests/support/world.h"
#include "transport/context.h"

enum { MIB = 1 << 20, SLICE_NS = 20 * 1000 };

/* Memory of a host that others may read and work on, and where its own reads go. */
struct store {
    struct mrd_mr *mr;
    uint8_t *at;
    size_t bytes;
};

static struct store open_store(struct sim_world *w, uint32_t host, size_t bytes)
{
    struct store s = {.at = aligned_alloc(4096, bytes), .bytes = bytes};

    assert_non_null(s.at);
    for (size_t i = 0; i < bytes; i++)
        s.at[i] = (uint8_t)(i * 31 + i / 251 + host);
    s.mr = mrd_reg_mr(w->node[host].pd, s.at, bytes,
                      MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ |
                          MRD_ACCESS_REMOTE_ATOMIC);
    assert_non_null(s.mr);
    return s;
}

static void close_store(struct store *s)
{
    if (s->mr)
        assert_int_equal(mrd_dereg_mr(s->mr), 0);
    free(s->at);
}

/* Of `len` bytes of `there` at `from`, with those of `here` at `to`. */
static int post(struct sim_world *w, uint32_t host, uint32_t target, enum mrd_wr_opcode opcode,
                const struct store *here, size_t to, const struct store *there, size_t from,
                uint32_t len)
{
    struct mrd_sge sge = {(uintptr_t)here->at + to, len, here->mr->lkey};
    struct mrd_send_wr wr = {.wr_id = to,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = MRD_SEND_SIGNALED};
    struct mrd_send_wr *bad;

    wr.ud.ah = w->node[host].ah[target];
    wr.ud.remote_qpn = w->node[target].qp[0]->qp_num;
    if (opcode == MRD_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)there->at + from;
        wr.wr.atomic.rkey = there->mr->rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)there->at + from;
        wr.wr.rdma.rkey = there->mr->rkey;
    }
    return mrd_post_send(w->node[host].qp[0], &wr, &bad);
}

/* Lets time pass, and counts the completions of each host. */
static void run(struct sim_world *w, uint64_t ns, unsigned *ok, unsigned *failed)
{
    uint64_t end_ns = mrd_sim_now(w->sim) + ns;

    while (mrd_sim_now(w->sim) < end_ns) {
        mrd_sim_run_until(w->sim, mrd_sim_now(w->sim) + SLICE_NS);
        for (uint32_t host = 0; host < w->options.hosts; host++) {
            struct mrd_wc wc[16];
            int n = w->node[host].context ? mrd_poll_cq(w->node[host].cq, 16, wc) : 0;

            for (int i = 0; i < n; i++) {
                ok[host] += wc[i].status == MRD_WC_SUCCESS;
                failed[host] += wc[i].status != MRD_WC_SUCCESS;
            }
        }
    }
}

/* How long one transfer takes, to a slice. */
static uint64_t time_of(enum mrd_wr_opcode opcode, uint32_t loss_ppm)
{
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.loss_ppm = loss_ppm, .straight = true});
    struct store here = open_store(w, HOST_0, 32 * MIB), there = open_store(w, HOST_1, 32 * MIB);
    unsigned ok[2] = {0}, failed[2] = {0};

    memset(here.at, 0, 4096);
    /* They know each other. */
    assert_int_equal(post(w, HOST_0, HOST_1, MRD_WR_RDMA_READ, &here, 0, &there, 0, 64), 0);
    run(w, 10 * MSEC_NS, ok, failed);
    assert_int_equal(ok[0], 1);
    uint64_t began_ns = mrd_sim_now(w->sim);
    assert_int_equal(post(w, HOST_0, HOST_1, opcode, &here, 0, &there, 0, 32 * MIB), 0);
    while (ok[0] < 2 && mrd_sim_now(w->sim) < began_ns + SEC_NS)
        run(w, SLICE_NS, ok, failed);
    began_ns = mrd_sim_now(w->sim) - began_ns;
    assert_int_equal(ok[0], 2);
    assert_memory_equal(here.at, there.at, 32 * MIB);
    close_store(&here);
    close_store(&there);
    return began_ns;
}

TEST(sim_read__streams_like_a_write)
{
    for (unsigned i = 0; i < 2; i++) {
        uint64_t read_ns = time_of(MRD_WR_RDMA_READ, i * 10000);
        uint64_t write_ns = time_of(MRD_WR_RDMA_WRITE, i * 10000);

        print_message("32 MiB at %u ppm lost: read %.2f ms, written %.2f ms\n", i * 10000,
                      (double)read_ns / 1e6, (double)write_ns / 1e6);
        assert_true(read_ns <= write_ns + write_ns / 10 + SLICE_NS);
    }
}

static void shrink(struct sim_world *w, uint32_t host, uint32_t num)
{
    struct mrd_engine *e = sim_engine(w, host);

    e->responses.num = e->peers.slots.num = num;
    e->refusals.num = 4 * num;
}

/* Each reads from the other while all records are taken at both ends, and packets are lost. */
static void reads_with_full_pools(enum mrd_order order)
{
    enum { READS = 200, BYTES = 20000 };
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.loss_ppm = 50000,
                                                                 .duplicate_ppm = 20000,
                                                                 .mtu = 1024,
                                                                 .order = order,
                                                                 .send_wr = 2 * READS});
    struct store s[2] = {open_store(w, HOST_0, 8 * MIB), open_store(w, HOST_1, 8 * MIB)};
    unsigned ok[2] = {0}, failed[2] = {0};

    for (uint32_t host = 0; host < 2; host++) {
        shrink(w, host, 4);
        mrd_qp_impl(w->node[host].qp[0])->requests.max_rd_atomic = READS;
    }
    for (uint32_t i = 0; i < READS; i++) {
        for (uint32_t host = 0; host < 2; host++) {
            assert_int_equal(post(w, host, !host, MRD_WR_RDMA_READ, &s[host],
                                  4 * MIB + i * (size_t)BYTES, &s[!host], i * 7, BYTES),
                             0);
            assert_int_equal(post(w, host, !host, MRD_WR_ATOMIC_FETCH_AND_ADD, &s[host],
                                  8 * MIB - 64, &s[!host], 2 * MIB, 8),
                             0);
        }
    }
    for (uint32_t host = 0; host < 2; host++)
        memset(s[host].at + 2 * MIB, 0, 8);
    for (unsigned i = 0; i < 100 && ok[0] + ok[1] < 4 * READS; i++)
        run(w, 20 * MSEC_NS, ok, failed);
    for (uint32_t host = 0; host < 2; host++) {
        uint64_t sum;

        assert_int_equal(ok[host], 2 * READS);
        memcpy(&sum, s[host].at + 2 * MIB, sizeof(sum));
        assert_int_equal(sum, READS);
        for (uint32_t i = 0; i < READS; i++)
            assert_memory_equal(s[host].at + 4 * MIB + i * (size_t)BYTES, s[!host].at + i * 7,
                                BYTES);
    }
    assert_true(sim_counter(w, HOST_0, "rx_refuse_resources") > 0);
    sim_run(w, SEC_NS / 10);
    close_store(&s[0]);
    close_store(&s[1]);
}

TEST(sim_read__all_pools_full_at_both_ends)
{
    reads_with_full_pools(MRD_ORDER_NONE);
    reads_with_full_pools(MRD_ORDER_MSG);
}

/* The target goes and another life answers in its place: each request ends, some perhaps run. */
TEST(sim_read__target_restarts)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){0});
    struct store here = open_store(w, HOST_0, 16 * MIB), there = open_store(w, HOST_1, 16 * MIB);
    unsigned ok[2] = {0}, failed[2] = {0};

    memset(there.at + 8 * MIB, 0, 8);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(post(w, HOST_0, HOST_1, MRD_WR_RDMA_READ, &here, i * (size_t)MIB, &there,
                              i * (size_t)MIB, MIB),
                         0);
        assert_int_equal(post(w, HOST_0, HOST_1, MRD_WR_ATOMIC_FETCH_AND_ADD, &here,
                              9 * MIB + i * 8u, &there, 8 * MIB, 8),
                         0);
    }
    run(w, 150 * USEC_NS, ok, failed);
    assert_int_equal(mrd_dereg_mr(there.mr), 0);
    there.mr = NULL;
    sim_restart(w, HOST_1);
    for (unsigned i = 0; i < 30 && ok[0] + failed[0] < 16; i++)
        run(w, SEC_NS, ok, failed);
    assert_int_equal(ok[0] + failed[0], 16);
    assert_true(failed[0] > 0);

    uint64_t sum;

    memcpy(&sum, there.at + 8 * MIB, sizeof(sum));
    assert_in_range(sum, 0, 8);
    close_store(&here);
    close_store(&there);
}

/*
 * The acks of a response are lost for longer than its responder waits for work of its own: it is
 * the requester's, who waits for longer.
 */
TEST(sim_read__patience_of_the_requester)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.peer_timeout_ns = 500 * MSEC_NS});
    unsigned ok[2] = {0}, failed[2] = {0};

    sim_restart_with(w, HOST_0, 60 * SEC_NS);
    struct store here = open_store(w, HOST_0, 8 * MIB);
    struct store there = open_store(w, HOST_1, 8 * MIB);
    assert_int_equal(
        post(w, HOST_0, HOST_1, MRD_WR_RDMA_READ, &here, 0, &there, 0, (uint32_t)there.bytes), 0);
    run(w, 200 * USEC_NS, ok, failed);
    for (int dead = 1; dead >= 0; dead--) {
        sim_links(w, "host0>host1*", "blackhole", dead ? "on" : "off");
        assert_int_equal(ok[0] + failed[0], 0);
        run(w, 5 * SEC_NS, ok, failed);
    }
    assert_int_equal(ok[0], 1);
    assert_memory_equal(here.at, there.at, there.bytes);
    close_store(&here);
    close_store(&there);
}
