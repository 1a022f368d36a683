/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two contexts over fake RDMA devices, used through the public API; time is real, progress is made
 * by the test.
 *
 * fixture_begin() with the devices' kind, or fake_ibv_begin() and fixture_open() for each end;
 * fixture_send() and its kin post, fixture_run() turns both ends until so many completions came;
 * fixture_end() closes all and demands that nothing leaked and no rule of verbs was broken.
 */
#ifndef MRD_TESTS_IBV_FIXTURE_H
#define MRD_TESTS_IBV_FIXTURE_H

#include "mrd/mrd.h"
#include "tests/support/fake_ibv.h"

enum {
    FIXTURE_BYTES = 4 << 20, /* of memory of an end */
    FIXTURE_DEPTH = 256,
    FIXTURE_QKEY = 42,
    FIXTURE_WCS_MAX = 4096,
};
#define FIXTURE_PATIENCE_NS 600000000000ull /* until a test that hangs fails */

struct fixture_end {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_mr *mr; /* of memory[0 .. FIXTURE_BYTES) */
    struct mrd_ah *ah; /* to the other end */
    uint8_t *memory;
    struct mrd_wc wc[FIXTURE_WCS_MAX]; /* completions taken */
    unsigned num_wc;
};

struct fixture {
    struct fake_ibv_device *device[2];
    struct fixture_end a, b;
};

/* Who makes progress in contexts opened from now on; manual unless a test sets it. */
extern enum mrd_progress fixture_progress;

/* Both ends are closed. The test owns it: fixture_end() is called after it. */
struct fixture *fixture_alloc(void);
/* Likewise, and each end has a device, which the test may change before fixture_open_both(). */
struct fixture *fixture_devices(enum fake_ibv_kind kind);
/* All ways that paths get their source ports by. */
enum { ENTROPIES = 3 };
extern const char *const fixture_entropies[ENTROPIES];

/* Both ends are open, and a has a handle to b. `attr` may be NULL. */
void fixture_open_both(struct fixture *f, const struct mrd_context_attr *attr);
/* All of this, and b has a handle to a, too. */
struct fixture *fixture_begin(enum fake_ibv_kind kind, const struct mrd_context_attr *attr);
void fixture_end(struct fixture *f);

/* One end's context and objects on a device of that name, without an address handle. */
void fixture_open(struct fixture_end *end, const char *device, const struct mrd_context_attr *attr);
void fixture_close(struct fixture_end *end);
/* The context alone, or NULL. */
struct mrd_context *fixture_open_context(const char *device, const struct mrd_context_attr *attr);
/* Fails the test instead of returning NULL. */
struct mrd_context *fixture_must_open(const char *device, const struct mrd_context_attr *attr);
/* Opening fails with this error and a sentence that has `text` in it. */
void fixture_refused(const char *device, const struct mrd_context_attr *attr, int error,
                     const char *text);
struct mrd_ah *fixture_ah(struct fixture_end *from, const struct fixture_end *to);

/*
 * [offset, offset + len) of the end's memory gets bytes that follow from `seed`; has it these
 * bytes?
 */
void fixture_fill(struct fixture_end *end, uint32_t offset, uint32_t len, uint64_t seed);
bool fixture_holds(const struct fixture_end *end, uint32_t offset, uint32_t len, uint64_t seed);

void fixture_recv(struct fixture_end *end, uint64_t wr_id, uint32_t offset, uint32_t len);
/* What mrd_post_send() says. A write goes to the same offset of `to`'s memory. */
int fixture_post(struct fixture_end *from, const struct fixture_end *to, enum mrd_wr_opcode opcode,
                 uint64_t wr_id, uint32_t offset, uint32_t len, unsigned flags);

/* One turn of both ends, or of one: poll completions, make progress. */
void fixture_turn(struct fixture *f);
void fixture_turn_one(struct fixture_end *end);
/* Turns until the ends have so many completions each; false: that took too long. */
bool fixture_run(struct fixture *f, unsigned a, unsigned b);
void fixture_turn_times(struct fixture *f, unsigned times);
/* Turns for so long. */
void fixture_pass(struct fixture *f, uint64_t ns);

/*
 * `count` messages of `len` bytes from a to b, sent or written, arrive intact; each completes once
 * at its sender.
 */
void fixture_transfer(struct fixture *f, enum mrd_wr_opcode opcode, uint32_t len, unsigned count);

/* Takes all events of the context, and gives them back. */
void fixture_drain_events(struct mrd_context *context);

uint64_t fixture_counter(struct mrd_context *context, const char *name);

#endif
