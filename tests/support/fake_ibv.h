/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fake libibverbs: devices, datagram queue pairs and a wire between them, all inside the test.
 *
 * Linked into a test program, its functions win over those of the shared library. It has what the
 * packet mover in transport/movers/ibv uses, and is stricter than real devices where the specification
 * lets it be: it gives no more than was asked for, reads buffers as late as it may, fills what is
 * undefined with rubbish, and notes what a caller must not do.
 *
 * fake_ibv_begin(); fake_ibv_add() for each device, whose public fields may then be changed; the
 * code under test; fake_ibv_end(), which is 0 if nothing leaked and no rule was broken. In between
 * fake_ibv_set() makes the devices misbehave, fake_ibv_fail() makes a call fail, fake_ibv_raise()
 * raises events, and fake_ibv_packet() tells what was sent. Nothing happens by itself: what a post
 * leaves behind is sent by whichever poll or notification request comes next (enum fake_ibv_pace).
 *
 * One mutex guards everything: all may be called from any thread, but devices may be changed only
 * while nothing runs.
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
    FAKE_IBV_SGE_MAX = 4,
};

/* -------------------------------------------------------------------------------------- devices */

/* Where the UDP source port of a packet comes from. */
enum fake_ibv_port_rule {
    FAKE_IBV_PORT_FLOW_LABEL, /* mlx5, hns: folded from the address handle's; 0: any */
    FAKE_IBV_PORT_QPN,        /* rxe: hashed from the sender's QPN */
    FAKE_IBV_PORT_QPN_PAIR,   /* hashed from both QPNs */
};

enum fake_ibv_kind {
    FAKE_IBV_MLX5,
    FAKE_IBV_HNS,
    FAKE_IBV_MLX4,
    FAKE_IBV_RXE,
    FAKE_IBV_IRDMA,
    FAKE_IBV_BNXT_RE,
};

struct fake_ibv_port {
    struct ibv_port_attr attr; /* gid_tbl_len counts empty entries too */
    struct {
        bool valid;
        enum ibv_gid_type type;
        union ibv_gid gid;
    } gids[FAKE_IBV_GIDS_MAX];
};

struct fake_ibv_device {
    char name[IBV_SYSFS_NAME_MAX];
    enum ibv_transport_type transport_type;
    enum fake_ibv_port_rule port_rule;
    struct ibv_device_attr attr; /* limits are enforced */
    uint32_t max_inline;
    uint64_t memlock_bytes; /* most bytes of all MRs; 0: no limit */
    bool keeps_cqes;        /* completions of a destroyed QP stay in the queue, as with rxe */
    struct fake_ibv_port ports[FAKE_IBV_PORTS_MAX]; /* port 1 is ports[0] */
    struct fake_ibv_device_state *state;            /* the fake's own */
};

void fake_ibv_begin(uint64_t seed);
/* Count leaks and broken rules, and tell of them on stderr; free everything. */
unsigned fake_ibv_end(void);

/*
 * A device with one active port of MTU 4096 and the GIDs of a network interface with IPv4 address
 * 192.0.2.n (n counts devices from 1): RoCEv1 and RoCEv2 of fe80::n, then of the address.
 */
struct fake_ibv_device *fake_ibv_add(enum fake_ibv_kind kind, const char *name);
/* Port 1's entry: an IPv4 or IPv6 address in text; NULL empties it. */
void fake_ibv_gid(struct fake_ibv_device *device, unsigned index, enum ibv_gid_type type,
                  const char *address);

/* --------------------------------------------------------------------------------- misbehaviour */

/* When a posted packet is read from its buffers and leaves. */
enum fake_ibv_pace {
    FAKE_IBV_LAZY =
        0, /* when any queue is next polled or armed: buffers reused at once are sent corrupted */
    FAKE_IBV_EAGER,  /* before the post returns */
    FAKE_IBV_MANUAL, /* never, while this is set */
};

/* A packet that left. */
struct fake_ibv_packet {
    const struct fake_ibv_device *device;
    uint16_t source_port;
    uint32_t src_qpn, dst_qpn;
    union ibv_gid sgid, dgid;
    uint8_t traffic_class, hop_limit; /* as sent */
    uint32_t flow_label, len;
    bool is_inline;
    int num_sge;
    struct ibv_sge sge[FAKE_IBV_SGE_MAX];
};

/* All zero: a good device. */
struct fake_ibv_knobs {
    enum fake_ibv_pace pace;
    unsigned post_takes; /* a call of ibv_post_send() takes so many; 0: all */
    unsigned post_total; /* all calls together take so many from now on; 0: all */
    int post_error;      /* they fail with this then; 0: ENOMEM */
    bool hold_cqes;      /* no send completion appears */
    uint32_t late_ppm;   /* a QP's send completions stay away from a poll */
    bool shuffle_cqes;   /* completions overtake those of other QPs */
    bool shuffle_srq;    /* shared receives are not taken in the order they were posted */
    bool shuffle_tx;     /* QPs send in no order; each keeps its own */
    uint32_t drop_ppm, dup_ppm, ce_ppm;
    uint32_t reorder_ppm; /* wait for up to 16 later packets */
    /* Is it lost besides? Asked inside the lock: it may not call this file's functions. */
    bool (*loses)(void *arg, const struct fake_ibv_packet *packet);
    void *arg;
};
void fake_ibv_set(const struct fake_ibv_knobs *knobs);

/*
 * The nth call from now (1: the next) of a verb in FAKE_IBV_CALLS fails with `error`, once; 0: all
 * do. ibv_poll_cq then returns -1.
 */
void fake_ibv_fail(const char *call, unsigned nth, int error);
/* Take back what has not failed yet: whether there was any. */
bool fake_ibv_fail_none(void);
/* Calls of a verb in FAKE_IBV_CALLS since fake_ibv_begin(). */
unsigned fake_ibv_calls(const char *call);

/*
 * An event that names no more than a port, and what it tells of: IBV_EVENT_PORT_ERR and PORT_ACTIVE
 * change the port's state; after IBV_EVENT_DEVICE_FATAL nothing is sent or received any more, and
 * posts fail with EIO.
 */
void fake_ibv_raise(struct fake_ibv_device *device, enum ibv_event_type type, int port_num);
/* The QP with that number fails: its work is flushed, IBV_EVENT_QP_FATAL follows. */
bool fake_ibv_break_qp(struct fake_ibv_device *device, uint32_t qpn);
/* The number of the device's QP at that place, oldest first; 0: there are no so many. */
uint32_t fake_ibv_qpn(const struct fake_ibv_device *device, unsigned index);

/* Packets that left since begin; the record of one, valid until fake_ibv_end(). */
unsigned fake_ibv_num_packets(void);
const struct fake_ibv_packet *fake_ibv_packet(unsigned index);
/* Copies of packets that a posted receive took. */
unsigned fake_ibv_num_received(void);

#endif
