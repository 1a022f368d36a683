/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The libfabric provider "mrd": reliable datagram endpoints (FI_EP_RDM) over mrd's public API.
 *
 * Objects are libfabric's, one struct each: fabric, domain, endpoint, address vector (AV),
 * completion queue (CQ), counter, event queue (EQ), memory region (MR), poll set. An endpoint has a
 * context of mrd of its own, and so an address; everything else belongs to a domain.
 *
 * Files, from the top. A file calls none above it, which tests/unit/check_circles.sh checks:
 *
 *   prov.c fabric.c ep.c cm.c context.c  what libfabric opens: fabrics, domains, endpoints
 *   send.c recv.c rma.c atomic.c  what endpoints post by; they alone make progress by themselves
 *   thread.c progress.c  completions, messages and events of endpoints, and who takes them
 *   atomic_target.c apply.c  atomics for peers
 *   remote.c key.c keys.c  remote memory, and the keys that peers name theirs by
 *   report.c errors.c  what the application is told of its operations
 *   match.c pull.c rx_end.c  messages meet receives: queue.c index.c rx.c
 *   transfer.c message.c op.c iov.c  operations, by work requests; wire.h  what messages say
 *   peer.c hint.c  peers of an endpoint, and what to try if one is not reached
 *   mr.c poll.c cq.c cntr.c av.c eq.c  regions, poll sets, queues, counters, addresses
 *   wait.c    what sleeps: descriptors
 *   info.c check.c ends.c iface.c links.c addr.c  getinfo
 *   params.c log.c nosys.c  parameters, the log, operations that there are not
 *
 * Locking: one mutex a domain, mrd_ofi_lock(); it covers all objects of the domain. EQs and fabrics
 * have their own. Functions named here expect the lock to be held unless they say otherwise.
 * Results: 0 or a count, or a negative FI_ error number.
 */
#ifndef MRD_OFI_H
#define MRD_OFI_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "core/list.h"
#include "mrd/mrd.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/wire.h"

enum {
    MRD_OFI_RMA_IOV_MAX = 8, /* remote ranges of an RMA operation */
    MRD_OFI_HEAD_BYTES = 40, /* before each message: wire.h */
    MRD_OFI_INJECT_BYTES = MRD_INLINE_BYTES_MAX - MRD_OFI_HEAD_BYTES,
    MRD_OFI_QUEUE = 1024, /* operations of a queue by default, each way */
    MRD_OFI_QUEUE_MAX = 1 << 16,
    MRD_OFI_CQ = 1024, /* entries of a completion queue by default */
};

/* ----------------------------------------------------------------------------------- parameters */

/* FI_MRD_*: read once, at the first getinfo. NULL or 0: mrd's default. */
struct mrd_ofi_params {
    const char *device;    /* FI_MRD_DEVICE: of mrd_get_device_list(), for example an RDMA device */
    const char *interface; /* FI_MRD_IFACE: addresses of this network interface only */
    const char *spray;     /* FI_MRD_SPRAY */
    const char *cc;        /* FI_MRD_CC */
    uint16_t *ports;       /* FI_MRD_PORTS FIRST-LAST: source ports */
    uint32_t num_ports;
    uint32_t paths;           /* FI_MRD_PATHS */
    uint32_t mtu;             /* FI_MRD_MTU: payload bytes of a packet */
    uint64_t peer_timeout_ns; /* FI_MRD_PEER_TIMEOUT, given in milliseconds */
    uint32_t eager_bytes;     /* FI_MRD_EAGER_SIZE: longer messages are pulled by the receiver */
    uint32_t rx_buffers;      /* FI_MRD_RX_BUFFERS: of eager_bytes each, an endpoint */
    uint32_t drop_ppm;        /* FI_MRD_DROP: received packets to lose on purpose, for tests */
};
extern struct mrd_ofi_params mrd_ofi_params;
/* Takes no lock; the first call reads the environment. */
void mrd_ofi_params_read(void);

/* Fills the list for these hints, as fi_provider.getinfo does. */
int mrd_ofi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
                    const struct fi_info *hints, struct fi_info **info);
/*
 * Is an endpoint, a domain or a fabric to be made with these attributes one that getinfo could have
 * returned? 0 or -FI_EINVAL with a line in the log.
 */
int mrd_ofi_check_ep_info(const struct fi_info *info);

/* -------------------------------------------------------------------------------------- waiting */

/*
 * What a CQ, counter or EQ is waited on by. The descriptor is an epoll set of the endpoints'
 * channels and of an eventfd for entries that no packet makes.
 */
struct mrd_ofi_wait {
    enum fi_wait_obj obj; /* FI_WAIT_NONE: there is no descriptor */
    int epoll_fd, event_fd;
    bool armed; /* write event_fd at the next entry */
    /* Threads in mrd_ofi_wait_block(); those of them that a signal came for and that have yet to see it. */
    uint32_t sleepers, to_wake;
    uint32_t signals; /* counts them */
};

/* obj: FI_WAIT_NONE, UNSPEC, FD, or YIELD. -FI_ENOSYS: another one. */
int mrd_ofi_wait_init(struct mrd_ofi_wait *w, enum fi_wait_obj obj);
void mrd_ofi_wait_fini(struct mrd_ofi_wait *w);
/* Also wakes up when `fd` is readable; forgets it. */
int mrd_ofi_wait_add_fd(struct mrd_ofi_wait *w, int fd);
void mrd_ofi_wait_del_fd(struct mrd_ofi_wait *w, int fd);
/* There is an entry: wakes those up who armed. */
void mrd_ofi_wait_signal(struct mrd_ofi_wait *w);
/* From now on signal() wakes up; earlier signals are forgotten. */
void mrd_ofi_wait_arm(struct mrd_ofi_wait *w);
/*
 * Without any lock: sleeps until something is readable or timeout_ms are over (-1: for ever; 0:
 * not). 0; -FI_EINTR.
 */
int mrd_ofi_wait_sleep(struct mrd_ofi_wait *w, int timeout_ms);
/*
 * As sleep(), with `mutex`, which is held, released meanwhile (NULL: there is none). Several
 * threads may sleep on the same wait: a signal wakes them all.
 */
int mrd_ofi_wait_block(struct mrd_ofi_wait *w, pthread_mutex_t *mutex, int timeout_ms);
/* fi_control() FI_GETWAIT and FI_GETWAITOBJ of an object with such a wait. -FI_ENOSYS: others. */
int mrd_ofi_wait_control(struct mrd_ofi_wait *w, int command, void *arg);
/* Milliseconds left of timeout_ms since start_ns, at least 0; -1 stays -1. */
int mrd_ofi_time_left(int timeout_ms, uint64_t start_ns);
uint64_t mrd_ofi_now_ns(void);

/* What entries come from: an endpoint. */
struct mrd_ofi_source {
    void (*progress)(struct mrd_ofi_source *source);
    void (*arm)(struct mrd_ofi_source *source); /* `fd` is readable at the next completion */
    int fd;
};

/* Those that a CQ or counter hears of. */
struct mrd_ofi_sources {
    struct mrd_ofi_source **source;
    uint32_t num, room;
};

/* A source counts once however often it is added; it goes with the last del(). */
int mrd_ofi_sources_add(struct mrd_ofi_sources *s, struct mrd_ofi_wait *w,
                        struct mrd_ofi_source *source);
void mrd_ofi_sources_del(struct mrd_ofi_sources *s, struct mrd_ofi_wait *w,
                         struct mrd_ofi_source *source);
/* Makes progress on all of them. */
void mrd_ofi_sources_progress(const struct mrd_ofi_sources *s);
/* Arms the wait, and asks all of them for an event at their next completion. */
void mrd_ofi_sources_arm(const struct mrd_ofi_sources *s, struct mrd_ofi_wait *w);

/* ------------------------------------------------------------------------------- fabric, domain */

struct mrd_ofi_fabric {
    struct fid_fabric fid;
    atomic_uint users; /* domains and EQs */
};

/* Regions of a domain, by key. */
struct mrd_ofi_mrs {
    struct mrd_node *bucket; /* of struct mrd_ofi_mr.by_key */
    uint32_t num, num_buckets;
    uint64_t next_key;
};

struct mrd_ofi_domain {
    struct fid_domain fid;
    struct mrd_ofi_fabric *fabric;
    struct mrd_ofi_eq *eq; /* bound with FI_REG_MR; NULL: none */
    struct fi_info *info;  /* as it was opened */
    pthread_mutex_t mutex;
    bool locks; /* the application does not serialize its calls itself, or a thread of ours runs */
    uint32_t users; /* objects */
    struct mrd_ofi_mrs mrs;
    struct mrd_node eps; /* mrd_ofi_ep.domain_node: those that are enabled */
    /* Automatic progress: a thread that sleeps on `wait`; started with the first endpoint. */
    bool automatic, running, stopping;
    pthread_t thread;
    struct mrd_ofi_wait wait;
};

int mrd_ofi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int mrd_ofi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
                        void *context);

static inline void mrd_ofi_lock(struct mrd_ofi_domain *d)
{
    if (d->locks)
        pthread_mutex_lock(&d->mutex);
}

static inline void mrd_ofi_unlock(struct mrd_ofi_domain *d)
{
    if (d->locks)
        pthread_mutex_unlock(&d->mutex);
}

/* --------------------------------------------------------------------------------- event queues */

struct mrd_ofi_event {
    struct mrd_node node;
    uint32_t type; /* FI_AV_COMPLETE, FI_MR_COMPLETE, FI_NOTIFY..., or what a user wrote */
    bool is_error;
    struct fi_eq_err_entry error;
    size_t bytes;
    uint8_t data[]; /* as fi_eq_read() gives it */
};

struct mrd_ofi_eq {
    struct fid_eq fid;
    struct mrd_ofi_fabric *fabric;
    pthread_mutex_t mutex;
    struct mrd_node events;
    bool writable; /* FI_WRITE: users may write */
    struct mrd_ofi_wait wait;
    atomic_uint users; /* objects that are bound to it */
};

int mrd_ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
                    void *context);
/* Takes the EQ's own lock. Adds a struct fi_eq_entry. 0 or -FI_ENOMEM. */
int mrd_ofi_eq_add(struct mrd_ofi_eq *eq, uint32_t type, fid_t fid, void *context, uint64_t data);
int mrd_ofi_eq_add_error(struct mrd_ofi_eq *eq, fid_t fid, void *context, uint64_t data, int error);

/* ------------------------------------------------------------------------------------ addresses */

/* struct sockaddr_in or sockaddr_in6. Of an RDMA device: the GID, sin6_flowinfo its QP number. */
union mrd_ofi_addr {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* Bytes of an address; 0: neither family. */
size_t mrd_ofi_addr_bytes(const union mrd_ofi_addr *addr);
/* Compares family, address, port and scope or QP number, and nothing that is padding. */
bool mrd_ofi_addr_equal(const union mrd_ofi_addr *a, const union mrd_ofi_addr *b);
uint32_t mrd_ofi_addr_hash(const union mrd_ofi_addr *addr);
/* Is it of the family that the format has? Formats but FI_SOCKADDR_IN and _IN6 have either. */
bool mrd_ofi_addr_fits(uint32_t format, const union mrd_ofi_addr *addr);
/* v4-mapped IPv6 becomes IPv4. GIDs of RDMA devices are not to be changed. */
void mrd_ofi_addr_unmap(union mrd_ofi_addr *addr);
/* Writes the address without its port, with its scope: as struct mrd_context_attr has it. */
void mrd_ofi_addr_host_text(const union mrd_ofi_addr *addr, char *text, size_t len);
/* Writes it as mrd_create_ah() takes it: text of MRD_ADDRESS_MAX. */
void mrd_ofi_addr_text(const union mrd_ofi_addr *addr, char *text);
/* Parses what mrd_query_address() and so on tell. v4-mapped IPv6 becomes IPv4, but of RDMA devices.
 */
int mrd_ofi_addr_parse(const char *text, union mrd_ofi_addr *addr);
/*
 * Looks up a host, by name or number, and a port (service NULL: MRD_DEFAULT_PORT, or what `node` as
 * an address of mrd's has). format: FI_SOCKADDR_IN, FI_SOCKADDR_IN6, or another one: either. Waits
 * for the answer: without any lock. 0, -FI_EADDRNOTAVAIL, -FI_ENOMEM.
 */
int mrd_ofi_addr_look_up(uint32_t format, const char *node, const char *service,
                         union mrd_ofi_addr *addr);

struct mrd_ofi_av_entry {
    union mrd_ofi_addr addr;
    bool used;
    uint32_t next; /* in its bucket: index + 1; 0: none */
};

struct mrd_ofi_av {
    struct fid_av fid;
    struct mrd_ofi_domain *domain;
    struct mrd_ofi_eq *eq; /* inserts are reported there; NULL: they are not */
    enum fi_av_type type;
    bool async; /* FI_EVENT */
    struct mrd_ofi_av_entry *entry;
    uint32_t num, room, free; /* entries ever used; room for; first free one + 1 */
    uint32_t *bucket;         /* index + 1 */
    uint32_t num_buckets;
    uint32_t version; /* counts inserts and removals: what peers remember of it is old then */
    uint32_t users;   /* endpoints */
};

int mrd_ofi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
                    void *context);
/* The address of an fi_addr; NULL: none. Valid until the next insert. */
const union mrd_ofi_addr *mrd_ofi_av_get(const struct mrd_ofi_av *av, fi_addr_t fi_addr);
/* The first fi_addr of an address; FI_ADDR_NOTAVAIL: it was not inserted. */
fi_addr_t mrd_ofi_av_find(const struct mrd_ofi_av *av, const union mrd_ofi_addr *addr);

/* ---------------------------------------------------------------------------- completion queues */

struct mrd_ofi_comp {
    void *context;
    uint64_t flags;
    size_t len;
    void *buf;
    uint64_t data, tag;
    fi_addr_t src;
    int err;        /* positive FI_ error number; 0: it succeeded */
    int prov_errno; /* enum mrd_wc_status, if mrd said so */
    size_t olen;
    char *text; /* what is said about the error, of malloc(); NULL: nothing */
};

struct mrd_ofi_cq {
    struct fid_cq fid;
    struct mrd_ofi_domain *domain;
    enum fi_cq_format format;
    enum fi_cq_wait_cond wait_cond;
    struct mrd_ofi_comp *ring; /* a power of two; grows */
    uint32_t head, tail, room; /* free-running */
    bool overrun;              /* there was no memory for an entry */
    int failed;                /* FI_: of what no operation is known to tell by; read once */
    bool gave;                 /* the last read got entries */
    bool signaled;             /* fi_cq_signal(): the next sread() returns */
    char *text;                /* that the last readerr() told; freed by the next */
    struct mrd_ofi_wait wait;
    struct mrd_ofi_sources sources;
    uint32_t users; /* endpoints */
};

int mrd_ofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
                    void *context);
/* Adds a copy, and takes comp->text over. */
void mrd_ofi_cq_add(struct mrd_ofi_cq *cq, const struct mrd_ofi_comp *comp);
/* What read() returns, once, when it has no more entries: a FI_ error number. */
void mrd_ofi_cq_fail(struct mrd_ofi_cq *cq, int error);
/* Has it nothing to tell? */
static inline bool mrd_ofi_cq_empty(const struct mrd_ofi_cq *cq)
{
    return cq->head == cq->tail && !cq->failed;
}

/* ------------------------------------------------------------------------------------- counters */

struct mrd_ofi_cntr {
    struct fid_cntr fid;
    struct mrd_ofi_domain *domain;
    atomic_ullong value, errors;      /* read without the lock, too */
    uint64_t seen_value, seen_errors; /* what the application was told last, for fi_trywait() */
    struct mrd_ofi_wait wait;
    struct mrd_ofi_sources sources;
    uint32_t users; /* endpoints and regions */
};

int mrd_ofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
                      void *context);
/* NULL: does nothing. */
void mrd_ofi_cntr_add(struct mrd_ofi_cntr *cntr, uint64_t value);
void mrd_ofi_cntr_add_error(struct mrd_ofi_cntr *cntr, uint64_t value);

/* ------------------------------------------------------------------------------------ poll sets */

int mrd_ofi_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set);
/* fi_trywait(): 0, or -FI_EAGAIN: one of the objects has something. */
int mrd_ofi_trywait(struct fid_fabric *fabric, struct fid **fids, int num);

/* ------------------------------------------------------------------------------- memory regions */

struct mrd_ofi_mr {
    struct fid_mr fid; /* its key is the one that peers name */
    struct mrd_ofi_domain *domain;
    struct mrd_node by_key;
    struct iovec iov[MRD_OFI_IOV_MAX]; /* remote offsets run through them in this order */
    uint32_t num_iov;
    uint64_t access; /* FI_REMOTE_WRITE... */
    uint64_t flags;  /* FI_RMA_EVENT: the target hears of what peers do */
    bool enabled;
    struct mrd_ofi_cntr *cntr; /* of remote writes; NULL: none */
    /* Registrations with endpoints, made when a peer asks for the key: struct mrd_ofi_mr_reg.node.
     */
    struct mrd_node regs;
};

/* A region's range, registered with an endpoint's context. */
struct mrd_ofi_mr_reg {
    struct mrd_node node, ep_node; /* on mrd_ofi_mr.regs; on mrd_ofi_ep.mr_regs */
    struct mrd_ofi_ep *ep;
    struct mrd_mr *mr;
    uint32_t index; /* of its range in mrd_ofi_mr.iov */
};

int mrd_ofi_mrs_init(struct mrd_ofi_domain *d);
void mrd_ofi_mrs_fini(struct mrd_ofi_domain *d);
extern struct fi_ops_mr mrd_ofi_mr_ops;
/* The region of a key; NULL: none. */
struct mrd_ofi_mr *mrd_ofi_mr_find(struct mrd_ofi_domain *d, uint64_t key);
/*
 * Registers range `index` of the region with the endpoint, unless it is already. NULL: it cannot
 * be, see mrd_last_error().
 */
struct mrd_mr *mrd_ofi_mr_register(struct mrd_ofi_mr *mr, struct mrd_ofi_ep *ep, uint32_t index);
/* Are the addresses that peers give virtual ones? Else offsets. */
bool mrd_ofi_mr_is_virtual(const struct mrd_ofi_domain *d);
/* Counters of regions hear of the endpoint from now on; no more. */
int mrd_ofi_mrs_add_ep(struct mrd_ofi_ep *ep);
void mrd_ofi_mrs_del_ep(struct mrd_ofi_ep *ep);
/* The endpoint closes: its registrations end. */
void mrd_ofi_mr_forget_ep(struct mrd_ofi_ep *ep);
/*
 * The memory behind [addr, addr + len) of the region, addr as peers give it: an offset, or a
 * virtual address with FI_MR_VIRT_ADDR. It may run over into the next range: *len becomes what lies
 * in this one, *index its number. NULL: it is outside.
 */
void *mrd_ofi_mr_at(const struct mrd_ofi_mr *mr, uint64_t addr, uint64_t *len, uint32_t *index);

/* --------------------------------------------------------------------------- names of endpoints */

extern struct fi_ops_cm mrd_ofi_cm_ops;

/* ---------------------------------------------------------------- operations that there are not */

/* Each slot of struct fi_ops: -FI_ENOSYS. */
int mrd_ofi_no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int mrd_ofi_no_control(struct fid *fid, int command, void *arg);
int mrd_ofi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
                        void *context);

#include "transport/adapters/ofi/ep.h"

#endif
