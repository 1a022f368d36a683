/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/ibv/ibv_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/kit/kit.h"
#include "tests/support/payload.h"

enum mrd_progress fixture_progress = MRD_PROGRESS_MANUAL;
const char *const fixture_entropies[ENTROPIES] = {"ah", "qp", "qpair"};

/* ---------------------------------------------------------------------------------------- open, close */

struct mrd_context *fixture_open_context(const char *name, const struct mrd_context_attr *attr)
{
    struct mrd_device device = {.transport = "ibv"};
    struct mrd_context_attr own = attr ? *attr : (struct mrd_context_attr){0};

    strncpy(device.name, name, sizeof(device.name) - 1);
    own.progress = fixture_progress;
    return mrd_open_device(&device, &own);
}

struct mrd_context *fixture_must_open(const char *device, const struct mrd_context_attr *attr)
{
    struct mrd_context *context = fixture_open_context(device, attr);

    if (!context)
        fail_msg("%s: %s", device, mrd_last_error());
    return context;
}

void fixture_refused(const char *device, const struct mrd_context_attr *attr, int error,
                     const char *text)
{
    struct mrd_context *context = fixture_open_context(device, attr);

    assert_null(context);
    if (errno != error || !strstr(mrd_last_error(), text))
        fail_msg("%s: %s", strerror(errno), mrd_last_error());
}

void fixture_open(struct fixture_end *end, const char *device, const struct mrd_context_attr *attr)
{
    struct mrd_qp_init_attr init = {
        .cap = {.max_send_wr = FIXTURE_DEPTH, .max_recv_wr = FIXTURE_DEPTH, .max_inline_data = 256},
        .qkey = FIXTURE_QKEY,
    };

    end->context = fixture_must_open(device, attr);
    end->pd = mrd_alloc_pd(end->context);
    end->cq = mrd_create_cq(end->context, 2 * FIXTURE_DEPTH, NULL);
    init.send_cq = init.recv_cq = end->cq;
    end->qp = mrd_create_qp(end->pd, &init);
    assert_non_null(end->qp);
    end->memory = calloc(1, FIXTURE_BYTES);
    end->mr = mrd_reg_mr(end->pd, end->memory, FIXTURE_BYTES,
                         MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE);
    assert_non_null(end->mr);
}

struct mrd_ah *fixture_ah(struct fixture_end *from, const struct fixture_end *to)
{
    char address[MRD_ADDRESS_MAX];

    assert_int_equal(mrd_query_address(to->context, address, sizeof(address)), 0);
    struct mrd_ah *ah = mrd_create_ah(from->pd, address);
    if (!ah)
        fail_msg("%s: %s", address, mrd_last_error());
    return ah;
}

void fixture_close(struct fixture_end *end)
{
    if (end->ah)
        assert_int_equal(mrd_destroy_ah(end->ah), 0);
    if (end->qp)
        assert_int_equal(mrd_destroy_qp(end->qp), 0);
    if (end->mr)
        assert_int_equal(mrd_dereg_mr(end->mr), 0);
    assert_int_equal(mrd_destroy_cq(end->cq), 0);
    assert_int_equal(mrd_dealloc_pd(end->pd), 0);
    assert_int_equal(mrd_close_device(end->context), 0);
    free(end->memory);
    memset(end, 0, sizeof(*end));
}

static void destroy_fixture(void *object)
{
    fixture_end(object);
}

struct fixture *fixture_alloc(void)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    kit_own(f, destroy_fixture);
    return f;
}

struct fixture *fixture_devices(enum fake_ibv_kind kind)
{
    struct fixture *f = fixture_alloc();

    fake_ibv_begin(1);
    for (unsigned i = 0; i < 2; i++)
        f->device[i] = fake_ibv_add(kind, NULL);
    return f;
}

void fixture_open_both(struct fixture *f, const struct mrd_context_attr *attr)
{
    fixture_open(&f->a, f->device[0]->name, attr);
    fixture_open(&f->b, f->device[1]->name, attr);
    f->a.ah = fixture_ah(&f->a, &f->b);
}

struct fixture *fixture_begin(enum fake_ibv_kind kind, const struct mrd_context_attr *attr)
{
    struct fixture *f = fixture_devices(kind);

    fixture_open_both(f, attr);
    f->b.ah = fixture_ah(&f->b, &f->a);
    return f;
}

void fixture_end(struct fixture *f)
{
    kit_disown(f);
    fixture_close(&f->a);
    fixture_close(&f->b);
    free(f);
    assert_int_equal(fake_ibv_end(), 0);
}

/* ---------------------------------------------------------------------------------------- work */

void fixture_fill(struct fixture_end *end, uint32_t offset, uint32_t len, uint64_t seed)
{
    payload_fill(end->memory + offset, len, 1, seed);
}

bool fixture_holds(const struct fixture_end *end, uint32_t offset, uint32_t len, uint64_t seed)
{
    return payload_mismatch(end->memory + offset, len, 1, seed) == len;
}

void fixture_recv(struct fixture_end *end, uint64_t wr_id, uint32_t offset, uint32_t len)
{
    struct mrd_sge sge = {(uintptr_t)end->memory + offset, len, end->mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(mrd_post_recv(end->qp, &wr, &bad), 0);
}

int fixture_post(struct fixture_end *from, const struct fixture_end *to, enum mrd_wr_opcode opcode,
                 uint64_t wr_id, uint32_t offset, uint32_t len, unsigned flags)
{
    struct mrd_sge sge = {(uintptr_t)from->memory + offset, len, from->mr->lkey};
    struct mrd_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = MRD_SEND_SIGNALED | flags,
        .imm_data = (uint32_t)wr_id,
        .ud = {from->ah, to->qp->qp_num, FIXTURE_QKEY},
        .wr.rdma = {(uintptr_t)to->memory + offset, to->mr->rkey},
    };
    struct mrd_send_wr *bad;

    return mrd_post_send(from->qp, &wr, &bad);
}

void fixture_turn_one(struct fixture_end *end)
{
    if (!end->context)
        return;
    assert_true(mrd_progress(end->context) >= 0);
    assert_true(end->num_wc + 32 <= FIXTURE_WCS_MAX);
    int n = mrd_poll_cq(end->cq, 32, end->wc + end->num_wc);
    assert_true(n >= 0);
    end->num_wc += (unsigned)n;
}

void fixture_turn(struct fixture *f)
{
    fixture_turn_one(&f->a);
    fixture_turn_one(&f->b);
}

void fixture_turn_times(struct fixture *f, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        fixture_turn(f);
}

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool fixture_run(struct fixture *f, unsigned a, unsigned b)
{
    uint64_t start_ns = now_ns();

    while (f->a.num_wc < a || f->b.num_wc < b) {
        fixture_turn(f);
        if (now_ns() - start_ns > FIXTURE_PATIENCE_NS) {
            print_error("%u of %u, %u of %u completions came\n", f->a.num_wc, a, f->b.num_wc, b);
            return false;
        }
    }
    return true;
}

void fixture_pass(struct fixture *f, uint64_t ns)
{
    uint64_t start_ns = now_ns();

    do
        fixture_turn(f);
    while (now_ns() - start_ns < ns);
}

/* Completions [0, n) are successes, of each work request once. */
static void check_once(const struct fixture_end *end, unsigned n)
{
    bool seen[FIXTURE_DEPTH] = {false};

    assert_int_equal(end->num_wc, n);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(end->wc[i].status, MRD_WC_SUCCESS);
        assert_in_range(end->wc[i].wr_id, 0, n - 1);
        assert_false(seen[end->wc[i].wr_id]);
        seen[end->wc[i].wr_id] = true;
    }
}

static bool takes_receive(enum mrd_wr_opcode opcode)
{
    return opcode != MRD_WR_RDMA_WRITE;
}

/* Where the message of completion `i` lies at the target; its number is in its immediate data, or in its bytes. */
static void check_bytes(const struct fixture *f, enum mrd_wr_opcode opcode, uint32_t len,
                        uint32_t stride, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t number = i, slot = i;

        if (opcode == MRD_WR_SEND_WITH_IMM)
            number = f->b.wc[i].imm_data;
        if (opcode == MRD_WR_SEND || opcode == MRD_WR_SEND_WITH_IMM) {
            slot = f->b.wc[i].wr_id;
            assert_int_equal(f->b.wc[i].byte_len, len);
        }
        if (opcode == MRD_WR_SEND && len >= 8) { /* unordered: whose it is, its bytes tell */
            for (number = 0; number < count; number++)
                if (memcmp(f->b.memory + slot * stride, f->a.memory + number * stride, len) == 0)
                    break;
            assert_true(number < count);
        } else if (opcode != MRD_WR_SEND) {
            assert_true(fixture_holds(&f->b, (uint32_t)slot * stride, len, number));
        }
    }
}

void fixture_transfer(struct fixture *f, enum mrd_wr_opcode opcode, uint32_t len, unsigned count)
{
    uint32_t stride = (len + 64) & ~63u;

    assert_true(count <= FIXTURE_DEPTH && (uint64_t)stride * count <= FIXTURE_BYTES);
    f->a.num_wc = f->b.num_wc = 0;
    memset(f->b.memory, 0, (size_t)stride * count);
    for (unsigned i = 0; i < count; i++) {
        fixture_fill(&f->a, i * stride, len, i);
        if (takes_receive(opcode))
            fixture_recv(&f->b, i, i * stride, len);
    }
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(fixture_post(&f->a, &f->b, opcode, i, i * stride, len, 0), 0);
    assert_true(fixture_run(f, count, takes_receive(opcode) ? count : 0));
    check_once(&f->a, count);
    if (takes_receive(opcode))
        check_once(&f->b, count);
    check_bytes(f, opcode, len, stride, count);
}

void fixture_drain_events(struct mrd_context *context)
{
    struct mrd_async_event event;

    while (!mrd_get_async_event(context, &event))
        mrd_ack_async_event(&event);
}

uint64_t fixture_counter(struct mrd_context *context, const char *name)
{
    struct mrd_counter counters[128];
    int n = mrd_query_counters(context, counters, 128);

    assert_in_range(n, 1, 128);
    for (int i = 0; i < n; i++)
        if (!strcmp(counters[i].name, name))
            return counters[i].value;
    fail_msg("no counter %s", name);
    return 0;
}
