/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fake libibverbs: devices, datagram queue pairs and a wire between them, all inside the test.
 *
 * Linked into a test program, its functions win over those of the shared library, so that code which calls verbs
 * runs without a device. It is stricter than real devices where the specification lets it be: it gives no more than was
 * asked for, reads buffers as late as it may, fills what is undefined with rubbish, and notes what a caller must not
 * do.
 *
 * fake_ibv_begin(); fake_ibv_add() for each device, whose public fields may then be changed; the code under test;
 * fake_ibv_end(), which is 0 if nothing leaked and no rule was broken. In between fake_ibv_set() makes the devices
 * misbehave, fake_ibv_fail() makes a call fail, fake_ibv_port() and its kin raise events, and fake_ibv_packet() tells
 * what was sent. Nothing happens by itself: what a post leaves behind is sent by whichever poll or
 * notification request comes next (enum fake_ibv_pace).
 *
 * One mutex guards everything: all may be called from any thread, but devices may be changed only while nothing runs.
 * To add a misbehaviour: a knob in struct fake_ibv_knobs, looked at where the packet (fake_ibv_wire.c), the completion
 * (fake_ibv_cq.c) or the post (fake_ibv_post.c) goes by. To add a verb: its name in FAKE_IBV_CALLS and its function,
 * which begins with fake_enter().
 */
#ifndef MRD_TESTS_SUPPORT_FAKE_IBV_H
#define MRD_TESTS_SUPPORT_FAKE_IBV_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAKE_IBV_DEVICES_MAX = 8,
    FAKE_IBV_PORTS_MAX = 2,
    FAKE_IBV_GIDS_MAX = 16,
    FAKE_IBV_SGE_MAX = 32,
    FAKE_IBV_SGE_RECORDED = 4,
    FAKE_IBV_HEAD_BYTES = 64, /* of each packet that are recorded */
    FAKE_IBV_GRH_BYTES = 40,  /* before the payload of each received datagram */
};

/* ---------------------------------------------------------------------------------------- devices */

/* Where the UDP source port of a packet comes from. */
enum fake_ibv_port_rule {
    FAKE_IBV_PORT_FLOW_LABEL, /* mlx5, hns: folded from the address handle's; 0: any */
    FAKE_IBV_PORT_QPN,        /* rxe: hashed from the sender's QPN */
    FAKE_IBV_PORT_QPN_PAIR,   /* efa: hashed from both QPNs */
};

enum fake_ibv_kind {
    FAKE_IBV_MLX5,
    FAKE_IBV_HNS,
    FAKE_IBV_MLX4,
    FAKE_IBV_RXE,
    FAKE_IBV_IRDMA,
    FAKE_IBV_BNXT_RE,
    /* No shared receive queue, 2 entries a list, 32 bytes inline, all_signaled, no_grh. */
    FAKE_IBV_EFA,
    FAKE_IBV_IB,  /* a mlx5 on InfiniBand: a LID, GIDs of a subnet */
    FAKE_IBV_SIW, /* iWARP: no datagrams */
};

struct fake_ibv_port {
    struct ibv_port_attr attr; /* gid_tbl_len counts empty entries too */
    struct {
        bool valid;
        enum ibv_gid_type type;
        union ibv_gid gid;
        uint32_t ifindex;
    } gids[FAKE_IBV_GIDS_MAX];
};

struct fake_ibv_device {
    char name[IBV_SYSFS_NAME_MAX];
    enum ibv_node_type node_type;
    enum ibv_transport_type transport_type;
    enum fake_ibv_port_rule port_rule;
    struct ibv_device_attr attr; /* limits are enforced */
    uint32_t max_inline;
    uint64_t memlock_bytes; /* most bytes of all MRs; 0: no limit */
    bool no_grh;            /* received datagrams have none: the 40 bytes are rubbish */
    bool all_signaled;      /* takes no sends that ask for no completion, as efa */
    bool keeps_cqes;        /* completions of a destroyed QP stay in the queue, as with rxe */
    struct fake_ibv_port ports[FAKE_IBV_PORTS_MAX]; /* port 1 is ports[0] */
    struct fake_ibv_device_state *state;            /* the fake's own */
};

void fake_ibv_begin(uint64_t seed);
/*
 * Tell on stderr which objects were never destroyed and which rules were broken; free everything. How many there
 * were.
 */
unsigned fake_ibv_end(void);

/*
 * A device with one active port of MTU 4096 and, but for InfiniBand, efa and iWARP, the GIDs of a network interface
 * with IPv4 address 192.0.2.n (n counts devices from 1): RoCEv1 and RoCEv2 of fe80::n, then of the address.
 */
struct fake_ibv_device *fake_ibv_add(enum fake_ibv_kind kind, const char *name);
/* Port 1's entry: an IPv4 or IPv6 address in text; NULL empties it. */
void fake_ibv_gid(struct fake_ibv_device *device, unsigned index, enum ibv_gid_type type,
                  const char *address);

/* ---------------------------------------------------------------------------------------- misbehaviour */

/* When a posted packet is read from its buffers and leaves. */
enum fake_ibv_pace {
    FAKE_IBV_LAZY =
        0, /* when any queue is next polled or armed: buffers reused at once are sent corrupted */
    FAKE_IBV_EAGER,  /* before the post returns */
    FAKE_IBV_MANUAL, /* by fake_ibv_transmit() only */
};

/* All zero: a good device. */
struct fake_ibv_knobs {
    enum fake_ibv_pace pace;
    unsigned post_takes; /* a call of ibv_post_send() takes so many; 0: all */
    unsigned post_total; /* all calls together take so many from now on; 0: all */
    int post_error;      /* they fail with this then; 0: ENOMEM */
    bool hold_cqes;      /* send completions wait for fake_ibv_release_cqes() */
    uint32_t late_ppm;   /* a QP's send completions stay away from a poll */
    bool shuffle_cqes;   /* completions overtake those of other QPs */
    bool shuffle_srq;    /* shared receives are not taken in the order they were posted */
    bool shuffle_tx;     /* QPs send in no order; each keeps its own */
    bool hold_packets;   /* packets wait for fake_ibv_release_packets() */
    uint32_t drop_ppm, dup_ppm, ce_ppm;
    uint32_t reorder_ppm; /* wait for up to 16 later packets */
};
void fake_ibv_set(const struct fake_ibv_knobs *knobs);

/*
 * The nth call from now (1: the next) of a verb in FAKE_IBV_CALLS fails with `error`, once; 0: all do. ibv_poll_cq and
 * ibv_get_*_event then return -1.
 */
void fake_ibv_fail(const char *call, unsigned nth, int error);
/* Take back what has not failed yet: whether there was any. */
bool fake_ibv_fail_none(void);
/* Calls of a verb since fake_ibv_begin(). */
unsigned fake_ibv_calls(const char *call);
/* Objects that exist, of all kinds. */
unsigned fake_ibv_objects(void);
/* Rules broken so far, and the last of them: "" if none. For tests that break them on purpose, which then clear. */
unsigned fake_ibv_problems(void);
const char *fake_ibv_problem(void);
void fake_ibv_clear_problems(void);

/* Set the port's state; going down or up raises IBV_EVENT_PORT_ERR or PORT_ACTIVE. */
void fake_ibv_port(struct fake_ibv_device *device, unsigned port_num, enum ibv_port_state state);
/* An event of no object but the port or device. */
void fake_ibv_raise(struct fake_ibv_device *device, enum ibv_event_type type, int port_num);
/* IBV_EVENT_DEVICE_FATAL: nothing is sent, received or completed any more, and posts fail with EIO. */
void fake_ibv_fatal(struct fake_ibv_device *device);
/* The QP with that number goes to the error state, its work is flushed, IBV_EVENT_QP_FATAL follows. */
bool fake_ibv_break_qp(struct fake_ibv_device *device, uint32_t qpn);
/* IBV_EVENT_SRQ_LIMIT_REACHED for each shared receive queue of the device. */
void fake_ibv_srq_limit(struct fake_ibv_device *device);
/* The number of the device's QP at that place, oldest first; 0: there are no so many. */
uint32_t fake_ibv_qpn(const struct fake_ibv_device *device, unsigned index);

/* ---------------------------------------------------------------------------------------- the wire */

enum fake_ibv_fate {
    FAKE_IBV_DELIVERED = 0,
    FAKE_IBV_HELD,
    FAKE_IBV_LOST,    /* a knob or the filter lost it */
    FAKE_IBV_NO_HOST, /* no active port has that GID */
    FAKE_IBV_NO_QP,   /* or it does not receive */
    FAKE_IBV_BAD_QKEY,
    FAKE_IBV_NO_BUFFER, /* no receive was posted */
    FAKE_IBV_BAD_BUFFER /* too short, or its key does not cover it: the receiving QP is in error now */
};
enum { FAKE_IBV_FATES = FAKE_IBV_BAD_BUFFER + 1 };

/* A packet that left, as recorded. `fate` is of its last copy so far. */
struct fake_ibv_packet {
    const struct fake_ibv_device *device;
    uint16_t source_port;
    uint32_t src_qpn, dst_qpn, qkey;
    union ibv_gid sgid, dgid;
    uint8_t traffic_class, hop_limit;
    uint32_t flow_label;
    uint32_t len;
    bool is_inline, signaled;
    uint8_t num_sge;
    struct ibv_sge sge[FAKE_IBV_SGE_RECORDED]; /* the first of num_sge */
    uint8_t head[FAKE_IBV_HEAD_BYTES];         /* the first bytes of the payload */
    enum fake_ibv_fate fate;
};

/* Packets that left since begin; the record of one, valid until fake_ibv_end(). */
unsigned fake_ibv_num_packets(void);
const struct fake_ibv_packet *fake_ibv_packet(unsigned index);
/* Copies of packets that met this fate. */
unsigned fake_ibv_fate_count(enum fake_ibv_fate fate);

enum fake_ibv_verdict { FAKE_IBV_DELIVER, FAKE_IBV_DROP, FAKE_IBV_DUPLICATE, FAKE_IBV_HOLD };
/*
 * Judge a packet before the knobs do, inside the lock: it may not call this file's functions. It may change the
 * traffic class, to mark CE.
 */
typedef enum fake_ibv_verdict fake_ibv_filter(void *arg, struct fake_ibv_packet *packet);
void fake_ibv_set_filter(fake_ibv_filter *filter, void *arg);

/* Up to `max` posted packets leave, oldest first: how many. Posts count as packets even if they fail. */
unsigned fake_ibv_transmit(unsigned max);
/* Up to `max` held packets arrive, oldest or newest first: how many. */
unsigned fake_ibv_release_packets(unsigned max, bool newest_first);
/* Up to `max` held send completions appear; of the QP that posted first, or last: how many. */
unsigned fake_ibv_release_cqes(unsigned max, bool last_qp_first);

/* The port that a device of the first rule gives a flow label other than 0; of the second, a QPN. */
uint16_t fake_ibv_port_of_label(uint32_t flow_label);
uint16_t fake_ibv_port_of_qpn(uint32_t qpn);

#endif
