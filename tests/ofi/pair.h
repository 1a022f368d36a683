/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints of the provider over 127.0.0.1, by the calls of libfabric and no others. FI_PROVIDER_PATH
 * says where the provider is.
 *
 * end_open() makes an endpoint with a domain, an address vector and queues of its own, or in the
 * domain of another one; end_meet() tells it the address of another; pair_open() makes two that know
 * each other. POST() posts again while there is no room. end_next() waits for the next entry of a
 * queue, and meanwhile makes progress on all ends that are open; it fails the test when END_PATIENCE_S
 * are over. end_close() expects that nothing uses the objects any more, but for memory that is
 * registered, which it lets go of. TEST_F(pair, name) and TEST_F(end, name) find them closed, and close
 * what they leave open; end_new() and what returns memory or information need no end either. The ends
 * that a failed test leaves open are not driven any more.
 */
#ifndef MRD_TESTS_OFI_PAIR_H
#define MRD_TESTS_OFI_PAIR_H

#include <netinet/in.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "tests/kit/kit.h"

enum {
    END_PATIENCE_S = 120, /* until a test that hangs fails: long, for machines that are busy */
    SILENCE_MS = 100,     /* how long nothing must come, where nothing may */
    END_TEXT = 256,
    END_CNTRS = 6,
    /* Of the provider: a message of more bytes is read by its receiver; and the largest injected. */
    EAGER_BYTES = 16384,
    INJECT_BYTES = 984,
    REGION_BYTES = 2 << 20,
    REGION_KEY = 0x77,
};
#define REGION_ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)

static const uint32_t end_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

/* Zeros: all capabilities, no order, all completions told, nothing to sleep on, offsets as addresses. */
struct end_options {
    uint64_t caps;
    uint64_t order;              /* FI_ORDER_SAS */
    uint64_t tx_flags, rx_flags; /* of operations, by default */
    uint64_t bind;               /* FI_SELECTIVE_COMPLETION */
    uint64_t counts;             /* what counters are bound to the endpoint for: FI_SEND... */
    const char *node;            /* whose address it is; NULL: 127.0.0.1 */
    uint32_t format;             /* of addresses */
    uint16_t port;               /* to bind to */
    size_t depth;                /* of the transmit queue */
    bool events;                 /* an event queue is bound to the endpoint */
    int mr_mode;
    enum fi_progress progress;
    enum fi_threading threading;
    enum fi_wait_obj wait; /* of queues and counters */
};

FIXTURE(end)
{
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *tx, *rx;
    struct fid_cntr *cntr[END_CNTRS]; /* NULL: not asked for */
    struct fid_eq *eq;                /* likewise */
    struct fid_ep *ep;
    struct registered *registered; /* memory */
    bool shares;                   /* fabric and domain are another end's */
    fi_addr_t to;                  /* the other end of a pair */
};

FIXTURE(pair)
{
    struct end a, b;
    uint8_t *memory; /* of b's, blank: see pair_register() */
    uint64_t base;   /* what the address of its first byte is to peers */
    uint64_t key;    /* the one asked for, unless the provider chose */
};
/* Pairs that are open: without options; with FI_ORDER_SAS; and with REGION_BYTES under REGION_KEY. */
FIXTURE_OF(plain, pair);
FIXTURE_OF(ordered, pair);
FIXTURE_OF(region, pair);

/* What came out of a completion queue. */
struct entry {
    struct fi_cq_tagged_entry ok; /* of an error: what both have */
    fi_addr_t src;
    int err; /* 0: it succeeded */
    size_t olen;
    bool bare;           /* there was no entry: the call that read failed */
    char text[END_TEXT]; /* of an error, what is said about it */
};

/* Without a name of the provider's in the hints, one of libfabric's own would answer, too. */
struct fi_info *end_hints(const struct end_options *o);
/* What fi_getinfo() offers; or it has to offer nothing. */
struct fi_info *end_offered(const char *node, const char *service, uint64_t flags,
                            const struct fi_info *hints);
void end_not_offered(const char *node, const char *service, uint64_t flags,
                     const struct fi_info *hints);
/* share: whose domain to use; NULL: makes one. */
void end_open(struct end *e, const struct end_options *o, struct end *share);
/* One more, which is closed after the test, at the latest. */
struct end *end_new(const struct end_options *o, struct end *share);
void end_close(struct end *e);
/* An endpoint of that information in the domain of `e`, bound to its vector and transmit queue. */
struct fid_ep *end_beside(struct end *e, struct fi_info *info);
struct sockaddr_in end_name(struct fid_ep *ep);
struct sockaddr_in6 end_name6(struct fid_ep *ep);
/* The counter of one of the bits of end_options.counts. */
struct fid_cntr *end_cntr(const struct end *e, uint64_t count);
/* The fi_addr of `other` at `e`. */
fi_addr_t end_meet(struct end *e, const struct end *other);
void pair_open(struct pair *p, const struct end_options *o);
/* Both in one domain. */
void pair_open_shared(struct pair *p, const struct end_options *o);
void pair_close(struct pair *p);
/* Of options of their own; b knows a, too. */
void pair_open_each(struct pair *p, const struct end_options *a, const struct end_options *b);

/* Memory of `e` for its peers, until end_unregister() or end_close(). mr NULL: the last one. */
struct fid_mr *end_register(struct end *e, void *memory, size_t bytes, uint64_t access,
                            uint64_t key);
void end_unregister(struct end *e, struct fid_mr *mr);
/* Memory of b's for a. With mr_mode FI_MR_BASIC, peers name addresses, and the provider chooses keys. */
struct fid_mr *pair_register(struct pair *p, size_t bytes, uint64_t key);

/* Makes progress on all open ends. */
void ends_drive(void);
void ends_drive_for(unsigned ms);
/* Fails the test when END_PATIENCE_S have gone by since then. */
void end_patience(uint64_t since_ns);
uint64_t end_now_ns(void);
void end_sleep_ms(unsigned ms);

/* Posts until there is room. */
#define POST(call)                                                                                 \
    do {                                                                                           \
        uint64_t since_ns_ = end_now_ns();                                                         \
        ssize_t result_;                                                                           \
                                                                                                   \
        while ((result_ = (call)) == -FI_EAGAIN) {                                                 \
            ends_drive();                                                                          \
            end_patience(since_ns_);                                                               \
        }                                                                                          \
        assert_int_equal(result_, 0);                                                              \
    } while (0)

/* Drives all ends until the condition holds. */
#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        uint64_t since_ns_ = end_now_ns();                                                         \
                                                                                                   \
        while (!(condition)) {                                                                     \
            ends_drive();                                                                          \
            end_patience(since_ns_);                                                               \
        }                                                                                          \
    } while (0)

/* Takes an entry if there is one, without waiting. */
bool end_take(struct fid_cq *cq, struct entry *entry);
struct entry end_next(struct fid_cq *cq);
/* The next entry is of this operation, and a success; or an error, of that number. */
struct entry end_ok(struct fid_cq *cq, const void *context);
struct entry end_fails(struct fid_cq *cq, const void *context, int err);
/* The next call that reads fails itself: no operation is known that the error is of. */
void end_fails_bare(struct fid_cq *cq, int err);
/* Nothing comes in SILENCE_MS. */
void end_silent(struct fid_cq *cq);

/* To or from the memory of e->to, and it has succeeded. */
struct entry end_write(struct end *e, const void *from, size_t len, uint64_t at, uint64_t key);
struct entry end_read(struct end *e, void *to, size_t len, uint64_t at, uint64_t key);
/* Of one buffer, with flags. */
ssize_t end_sendmsg(struct end *e, const void *from, size_t len, fi_addr_t to, void *context,
                    uint64_t flags);
ssize_t end_recvmsg(struct end *e, void *into, size_t len, fi_addr_t from, void *context,
                    uint64_t flags);
/* Receives for many messages end when less than that is left of them. */
void end_set_min_multi_recv(struct end *e, size_t bytes);

/* Releases it after the test, whatever that comes to, and its fixture's end. Returns the object. */
void *end_keep(void *object, void (*release)(void *object));
/* Bytes until the test is over: filled, all `blank`, or zeros. */
uint8_t *filled(size_t bytes, uint64_t message);
uint8_t *blank(size_t bytes);
void *zeros(size_t bytes);
enum { BLANK = 0xee };
/* Fails the test unless the bytes are those of the message. */
void assert_filled(const uint8_t *bytes, size_t len, uint64_t message);
void assert_blank(const uint8_t *bytes, size_t len);

#endif
