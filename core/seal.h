/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealed packets: each datagram of the engine's is encrypted and authenticated as it leaves, and opened before
 * the engine sees it. SEALING.md has formats, keys, and the reasons.
 *
 * A context has a life, 64 random bits that are its name for as long as it is open. A packet names the
 * life that sent it, the one that it is for (0: whoever is there), and its number, which no other packet
 * of its sender's has. Keys follow from a shared key and both lives; nothing is exchanged. What is kept
 * of a life that speaks to us (struct mrd_seal_peer) may be forgotten at any time: keys are derived
 * again, and the engine does not execute old packets of a peer twice.
 */
#ifndef MRD_CORE_SEAL_H
#define MRD_CORE_SEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/alloc.h"
#include "core/cipher.h"
#include "core/packet.h"

enum {
    MRD_SEAL_HEAD_BYTES = 32, /* in the clear */
    MRD_SEAL_BYTES = MRD_SEAL_HEAD_BYTES + MRD_CIPHER_TAG_BYTES,
    MRD_SEAL_KEY_BYTES = 32,
    MRD_SEAL_KEY_ID_MAX = 0xffffff,
    MRD_SEAL_SUBKEY_BITS = 24, /* so many packets of a context have one key to a peer */
};

/* What becomes of a packet that is received. */
enum mrd_seal_verdict {
    MRD_SEAL_OPENED = 0,
    MRD_SEAL_CLEAR,   /* it is not sealed */
    MRD_SEAL_NO_KEY,  /* we have no key of that id */
    MRD_SEAL_BAD_TAG, /* forged, damaged, or of another key of that id */
    MRD_SEAL_REPLAY,  /* it came before, or is too old to tell, or is our own */
    MRD_SEAL_BUSY,    /* of a life not heard of: too many of those lately; or the cipher failed */
    MRD_SEAL_VERDICTS,
};

struct mrd_seal_stats {
    uint64_t verdicts[MRD_SEAL_VERDICTS];
    uint64_t
        failed; /* the library of ciphers failed, or there is no key to send with: packets lost */
    uint64_t derived; /* keys */
};

struct mrd_seal_config {
    const struct mrd_cipher *cipher; /* borrowed, outlives this */
    uint64_t life;                   /* random, not 0: never the same twice */
    uint32_t reply;                  /* mrd_addr.port of ours */
    uint32_t max_peers;
    uint64_t number; /* of the first packet: 0, but in tests of what comes late */
};

struct mrd_seal;

/* NULL: no memory. */
struct mrd_seal *mrd_seal_create(const struct mrd_seal_config *config,
                                 const struct mrd_allocator *allocator);
/* Wipes all keys. */
void mrd_seal_destroy(struct mrd_seal *s);

/*
 * Accepts packets of that key, and the last one with `sends` is the one to send with. A key of that id
 * that is there already is replaced. False: no memory, or the library failed.
 */
bool mrd_seal_add_key(struct mrd_seal *s, uint32_t id, const uint8_t *key, bool sends);
void mrd_seal_remove_key(struct mrd_seal *s, uint32_t id);
bool mrd_seal_has_key(const struct mrd_seal *s, uint32_t id);

/* What an unopened packet says of where its sender is answered: anybody can have written it. */
struct mrd_seal_claim {
    uint32_t key_id, reply;
};

/*
 * Opens a packet in place: then its data is what the engine of the life that it names sent. If it is
 * to be dropped, *claim is filled; its bytes may have changed, its data and len have not.
 */
enum mrd_seal_verdict mrd_seal_open(struct mrd_seal *s, struct mrd_rx_packet *packet,
                                    uint64_t now_ns, struct mrd_seal_claim *claim);
/*
 * Seals a packet of the engine's into its head memory, which has MRD_SEAL_HEAD_BYTES of room in front of
 * the head and MRD_CIPHER_TAG_BYTES behind all of it: what is at its iov is not read any more.
 */
void mrd_seal_packet(struct mrd_seal *s, struct mrd_tx_packet *packet);

const struct mrd_seal_stats *mrd_seal_stats(const struct mrd_seal *s);

#endif
