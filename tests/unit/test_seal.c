/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets between contexts that share keys, those of strangers, and the nonces of all of them. */
#include <stdlib.h>
#include <string.h>

#include "core/replay.h"
#include "core/rng.h"
#include "core/seal.h"
#include "core/wire.h"
#include "tests/kit/kit.h"
#include "transport/crypto.h"

enum { ROOM = 16384, ENDS = 4, PEERS = 8, OVERHEAD = MRD_SEAL_BYTES, BASE = MRD_WIRE_BASE_BYTES };

static const uint8_t key_1[MRD_SEAL_KEY_BYTES] = "the first of the keys", key_2[32] = "another";

static void *alloc(void *arg, size_t bytes)
{
    (void)arg;
    return calloc(1, bytes);
}

static void release(void *arg, void *memory, size_t bytes)
{
    (void)arg, (void)bytes;
    free(memory);
}

static const struct mrd_allocator heap = {.alloc = alloc, .free = release};

/* One packet: as the engine made it, and as it is on the wire. */
struct packet {
    uint8_t memory[ROOM], inner[ROOM];
    struct mrd_tx_packet tx;
    struct mrd_rx_packet rx; /* at memory, too */
};

FIXTURE(ends)
{
    struct mrd_cipher *cipher;
    struct mrd_seal *end[ENDS];
    struct packet p;
    struct mrd_seal_claim claim;
};

static uint64_t life_of(unsigned i)
{
    return 0x1111111111111111u * (i + 1);
}

static struct mrd_seal *open_end(struct ends *f, uint64_t life, uint64_t number)
{
    struct mrd_seal_config config = {
        .cipher = f->cipher, .life = life, .reply = 4793, .max_peers = PEERS, .number = number};
    struct mrd_seal *s = mrd_seal_create(&config, &heap);

    assert_non_null(s);
    assert_true(mrd_seal_add_key(s, 1, key_1, true));
    return s;
}

FIXTURE_SETUP(ends)
{
    self->cipher = mrd_crypto_openssl(MRD_CIPHER_AES_128_GCM);
    assert_non_null(self->cipher);
    for (unsigned i = 0; i < ENDS; i++)
        self->end[i] = open_end(self, life_of(i), 0);
}

FIXTURE_TEARDOWN(ends)
{
    for (unsigned i = 0; i < ENDS; i++)
        mrd_seal_destroy(self->end[i]);
    mrd_crypto_openssl_close(self->cipher);
}

/* A packet of so many bytes, of which the last ones are elsewhere, as payload is. */
static void make(struct packet *p, uint32_t len, uint32_t outside, uint64_t to)
{
    static uint8_t payload[ROOM];

    memset(p->memory, 0xee, sizeof(p->memory));
    for (uint32_t i = 0; i < len; i++)
        p->inner[i] = (uint8_t)(i * 7 + len);
    memcpy(p->memory + MRD_SEAL_HEAD_BYTES, p->inner, len - outside);
    memcpy(payload, p->inner + len - outside, outside);
    p->tx = (struct mrd_tx_packet){.head = p->memory + MRD_SEAL_HEAD_BYTES,
                                   .head_len = (uint16_t)(len - outside),
                                   .len = len,
                                   .life = to,
                                   .num_iov = outside > 0,
                                   .iov = {{payload, outside}}};
}

static void seal(struct mrd_seal *s, struct packet *p, uint32_t len, uint32_t outside, uint64_t to)
{
    make(p, len, outside, to);
    mrd_seal_packet(s, &p->tx);
    assert_int_equal(p->tx.len, len + OVERHEAD);
    assert_int_equal(p->tx.head_len, p->tx.len);
    assert_int_equal(p->tx.num_iov, 0);
    assert_ptr_equal(p->tx.head, p->memory);
    p->rx = (struct mrd_rx_packet){.data = p->memory, .len = p->tx.len};
}

static enum mrd_seal_verdict open_packet(struct ends *f, unsigned at, struct packet *p,
                                         uint64_t now_ns)
{
    return mrd_seal_open(f->end[at], &p->rx, now_ns, &f->claim);
}

/* From one end to another one that knows it. */
static enum mrd_seal_verdict pass(struct ends *f, unsigned from, unsigned to)
{
    seal(f->end[from], &f->p, 100, 0, life_of(to));
    return open_packet(f, to, &f->p, 0);
}

static uint64_t count_of(const struct mrd_seal *s, enum mrd_seal_verdict verdict)
{
    return mrd_seal_stats(s)->verdicts[verdict];
}

TEST_F(ends, mrd_seal_open__what_was_sealed)
{
    static const uint32_t len[] = {BASE, BASE + 1, 100, 1400, 9000, ROOM - OVERHEAD};

    for (size_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
        for (uint32_t outside = 0; outside <= len[i] - BASE; outside += (len[i] - BASE) / 2 + 1) {
            seal(self->end[0], &self->p, len[i], outside, life_of(1));
            assert_int_equal(open_packet(self, 1, &self->p, 0), MRD_SEAL_OPENED);
            assert_int_equal(self->p.rx.len, len[i]);
            assert_memory_equal(self->p.rx.data, self->p.inner, len[i]);
            assert_true(self->p.rx.life == life_of(0));
        }
    }
}

/* No four bytes of the packet are on the wire. */
TEST_F(ends, mrd_seal_packet__leaves_nothing_in_the_clear)
{
    seal(self->end[0], &self->p, 1000, 900, life_of(1));
    for (uint32_t i = MRD_SEAL_HEAD_BYTES; i + 4 <= self->p.rx.len; i++)
        for (uint32_t k = 0; k + 4 <= 1000; k++)
            assert_true(memcmp(self->p.memory + i, self->p.inner + k, 4) != 0);
}

/* Whatever is changed, nothing is opened and nothing changes: the packet itself is opened then. */
TEST_F(ends, mrd_seal_open__each_bit_is_authentic)
{
    struct packet was;

    for (unsigned known = 0; known < 2; known++) {
        seal(self->end[0], &self->p, BASE, 0, life_of(1));
        was = self->p;
        for (uint32_t bit = 0; bit < 8 * was.rx.len; bit++) {
            memcpy(self->p.memory, was.memory, was.rx.len);
            self->p.memory[bit / 8] ^= (uint8_t)(1u << bit % 8);
            self->p.rx = was.rx;
            self->p.rx.data = self->p.memory;
            assert_int_not_equal(open_packet(self, 1, &self->p, (uint64_t)bit * MRD_SEC),
                                 MRD_SEAL_OPENED);
        }
        memcpy(self->p.memory, was.memory, was.rx.len);
        self->p.rx.len = was.rx.len - 1;
        assert_int_not_equal(open_packet(self, 1, &self->p, 0), MRD_SEAL_OPENED);
        memcpy(self->p.memory, was.memory, was.rx.len);
        self->p.rx.len = was.rx.len + 1;
        assert_int_not_equal(open_packet(self, 1, &self->p, 0), MRD_SEAL_OPENED);
        memcpy(self->p.memory, was.memory, was.rx.len);
        self->p.rx.len = was.rx.len;
        assert_int_equal(open_packet(self, 1, &self->p, 0), MRD_SEAL_OPENED);
    }
}

TEST_F(ends, mrd_seal_open__short_and_clear_ones)
{
    self->p.rx = (struct mrd_rx_packet){.data = self->p.memory};
    self->p.memory[0] = MRD_WIRE_VERSION << 4 | MRD_WIRE_SEALED;
    for (uint32_t len = 0; len < OVERHEAD + BASE; len++) {
        self->p.rx.len = len;
        assert_int_equal(open_packet(self, 1, &self->p, 0), MRD_SEAL_CLEAR);
    }
    self->p.memory[0] = MRD_WIRE_VERSION << 4 | MRD_WIRE_DATA;
    self->p.memory[31] = 77; /* of the port to answer to */
    self->p.rx.len = 200;
    assert_int_equal(open_packet(self, 1, &self->p, 0), MRD_SEAL_CLEAR);
    assert_int_equal(self->claim.reply, 77);
    assert_int_equal(count_of(self->end[1], MRD_SEAL_CLEAR), OVERHEAD + BASE + 1);
}

TEST_F(ends, mrd_seal_open__once_and_in_any_order)
{
    enum { NUM = 500 };
    struct packet *p = calloc(NUM, sizeof(*p));

    for (unsigned i = 0; i < NUM; i++)
        seal(self->end[0], &p[i], 60, 0, life_of(1));
    for (unsigned i = 0; i < NUM; i++) { /* 7 and 500 have no divisor in common */
        struct packet copy = p[i * 7 % NUM], again = copy;

        copy.rx.data = copy.memory;
        again.rx.data = again.memory;
        assert_int_equal(open_packet(self, 1, &copy, 0), MRD_SEAL_OPENED);
        assert_int_equal(open_packet(self, 1, &again, 0), MRD_SEAL_REPLAY);
    }
    free(p);
}

/* A packet that is as old as the window is long: it may have come before. */
TEST_F(ends, mrd_seal_open__beyond_the_window)
{
    struct packet first, second;

    seal(self->end[0], &first, 60, 0, life_of(1));
    seal(self->end[0], &second, 60, 0, life_of(1));
    for (unsigned i = 0; i < MRD_REPLAY_NUMBERS + 61; i++)
        assert_int_equal(pass(self, 0, i % 2 ? 1 : 2), MRD_SEAL_OPENED);
    assert_int_equal(pass(self, 0, 1), MRD_SEAL_OPENED);
    first.rx.data = first.memory;
    second.rx.data = second.memory;
    assert_int_equal(open_packet(self, 1, &first, 0), MRD_SEAL_OPENED);
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(pass(self, 0, 1), MRD_SEAL_OPENED);
    assert_int_equal(open_packet(self, 1, &second, 0), MRD_SEAL_REPLAY);
}

/* What somebody sends back to its sender, or to another member, is opened by neither. */
TEST_F(ends, mrd_seal_open__elsewhere)
{
    struct packet copy;

    seal(self->end[0], &self->p, 60, 0, life_of(1));
    copy = self->p;
    copy.rx.data = copy.memory;
    assert_int_equal(open_packet(self, 0, &copy, 0), MRD_SEAL_REPLAY);
    /* Another member has the key, and takes it as if its own earlier life was meant: the engine says so. */
    copy = self->p;
    copy.rx.data = copy.memory;
    assert_int_equal(open_packet(self, 2, &copy, 0), MRD_SEAL_OPENED);
    assert_int_equal(open_packet(self, 1, &self->p, 0), MRD_SEAL_OPENED);
}

/* A question to anybody is an empty packet. Others, that could do something, are not taken so. */
TEST_F(ends, mrd_seal_open__questions)
{
    for (unsigned i = 0; i < 3; i++) { /* nothing is kept of who asks: also twice */
        seal(self->end[0], &self->p, BASE, 0, 0);
        assert_int_equal(open_packet(self, 1 + i % 2, &self->p, 0), MRD_SEAL_OPENED);
        assert_true(self->p.rx.life == life_of(0));
    }
    seal(self->end[0], &self->p, BASE + 12, 0, 0);
    assert_int_equal(open_packet(self, 1, &self->p, 0), MRD_SEAL_BAD_TAG);
    assert_int_equal(mrd_seal_stats(self->end[1])->derived, 1); /* that of the key itself */
}

TEST_F(ends, mrd_seal_open__keys)
{
    uint8_t other[MRD_SEAL_KEY_BYTES] = "of the same id";

    assert_int_equal(pass(self, 0, 1), MRD_SEAL_OPENED);
    /* The receiver has both before the sender uses the new one, and goes on with the old one. */
    assert_true(mrd_seal_add_key(self->end[1], 2, key_2, false));
    assert_int_equal(pass(self, 0, 1), MRD_SEAL_OPENED);
    assert_int_equal(pass(self, 1, 0), MRD_SEAL_OPENED);
    assert_true(mrd_seal_add_key(self->end[0], 2, key_2, true));
    assert_int_equal(pass(self, 0, 1), MRD_SEAL_OPENED);
    assert_int_equal(self->p.memory[3], 2);
    assert_int_equal(pass(self, 1, 0), MRD_SEAL_OPENED);
    assert_int_equal(self->p.memory[3], 1);
    mrd_seal_remove_key(self->end[1], 1);
    assert_int_equal(pass(self, 0, 1), MRD_SEAL_OPENED);
    assert_false(mrd_seal_has_key(self->end[1], 1));
    assert_int_equal(pass(self, 2, 1), MRD_SEAL_NO_KEY);
    assert_int_equal(self->claim.key_id, 1);
    assert_int_equal(self->claim.reply, 4793);
    /* Also where keys of the id before were in use. */
    assert_true(mrd_seal_add_key(self->end[1], 2, other, true));
    assert_int_equal(pass(self, 0, 1), MRD_SEAL_BAD_TAG);
    assert_int_equal(pass(self, 1, 0), MRD_SEAL_BAD_TAG);
}

/* Nothing leaves in the clear where there is no key to send with. */
TEST_F(ends, mrd_seal_packet__without_a_key)
{
    mrd_seal_remove_key(self->end[0], 1);
    seal(self->end[0], &self->p, 400, 300, life_of(1));
    for (uint32_t i = MRD_SEAL_HEAD_BYTES; i < self->p.rx.len; i++)
        assert_int_equal(self->p.memory[i], 0);
    assert_int_equal(mrd_seal_stats(self->end[0])->failed, 1);
    assert_int_equal(open_packet(self, 1, &self->p, 0), MRD_SEAL_NO_KEY);
}

/* A new key after so many packets; those of the old one, that were overtaken, are opened as well. */
TEST_F(ends, mrd_seal_packet__subkeys)
{
    struct packet old[8];
    uint64_t derived;

    mrd_seal_destroy(self->end[0]);
    self->end[0] = open_end(self, life_of(0), (UINT64_C(5) << MRD_SEAL_SUBKEY_BITS) - 8);
    for (unsigned i = 0; i < 8; i++)
        seal(self->end[0], &old[i], 60, 0, life_of(1));
    old[0].rx.data = old[0].memory;
    assert_int_equal(open_packet(self, 1, &old[0], 0), MRD_SEAL_OPENED);
    derived = mrd_seal_stats(self->end[1])->derived;
    for (unsigned i = 1; i < 8; i++) {
        old[i].rx.data = old[i].memory;
        assert_int_equal(pass(self, 0, 1), MRD_SEAL_OPENED);
        assert_int_equal(open_packet(self, 1, &old[i], 0), MRD_SEAL_OPENED);
    }
    assert_int_equal(mrd_seal_stats(self->end[1])->derived, derived + 1); /* it holds both */
}

/* Of more lives than it has room for: each is opened, and who was used least recently is forgotten. */
TEST_F(ends, mrd_seal_open__many_lives)
{
    struct mrd_seal *other[3 * PEERS];

    for (unsigned i = 0; i < 3 * PEERS; i++)
        other[i] = open_end(self, 100 + i, 0);
    for (unsigned turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < 3 * PEERS; i++) {
            seal(other[i], &self->p, 60, 0, life_of(1));
            assert_int_equal(open_packet(self, 1, &self->p, 0), MRD_SEAL_OPENED);
            seal(self->end[1], &self->p, 60, 0, 100 + i);
            assert_int_equal(mrd_seal_open(other[i], &self->p.rx, 0, &self->claim),
                             MRD_SEAL_OPENED);
            assert_int_equal(pass(self, 0, 1), MRD_SEAL_OPENED);
        }
    }
    for (unsigned i = 0; i < 3 * PEERS; i++)
        mrd_seal_destroy(other[i]);
}

/* Forged packets cost neither what is kept of the living nor more than a bounded share of the time. */
TEST_F(ends, mrd_seal_open__strangers)
{
    uint64_t derived, busy = 0;

    for (unsigned i = 1; i < ENDS; i++)
        assert_int_equal(pass(self, i, 0), MRD_SEAL_OPENED);
    for (unsigned i = 0; i < 100000; i++) {
        struct mrd_rng rng;

        mrd_rng_init(&rng, i);
        seal(self->end[1], &self->p, BASE, 0, life_of(0));
        for (unsigned k = 16; k < 24; k++) /* another life */
            self->p.memory[k] = (uint8_t)mrd_rng_u64(&rng);
        busy += open_packet(self, 0, &self->p, i * 10 * MRD_USEC) == MRD_SEAL_BUSY;
    }
    assert_in_range(busy, 70000, 99000); /* one in 50 us has a key derived, after the first 1,024 */
    derived = mrd_seal_stats(self->end[0])->derived;
    for (unsigned i = 1; i < ENDS; i++)
        assert_int_equal(pass(self, i, 0), MRD_SEAL_OPENED);
    assert_int_equal(mrd_seal_stats(self->end[0])->derived,
                     derived); /* their keys are there still */
}

/* --------------------------------------------------------------------------------------- nonces */

enum { SEEN = 1 << 20 };

/* A cipher that notes each key and nonce that it seals with. */
struct watch {
    struct mrd_cipher *below;
    uint64_t (*seen)[3]; /* a hash table: key, and nonce in two words; all zero: free */
    uint32_t num;
    bool fails;
};

static bool watch_hmac(void *arg, const uint8_t *key, const void *data, uint32_t len, uint8_t *out)
{
    struct watch *w = arg;

    return !w->fails && w->below->hmac(w->below->arg, key, data, len, out);
}

/* The key itself is what it expands to: it is not used to encrypt. */
static bool watch_expand(void *arg, void *state, const uint8_t *key)
{
    struct watch *w = arg;

    memcpy(state, key, 16);
    return !w->fails;
}

static void watch_wipe(void *arg, void *state)
{
    (void)arg;
    memset(state, 0, 16);
}

static bool watch_seal(void *arg, void *state, const uint8_t *nonce, const void *aad,
                       uint32_t aad_len, const struct iovec *pieces, unsigned num, uint8_t *out)
{
    struct watch *w = arg;
    uint64_t row[3], at;

    (void)aad, (void)aad_len, (void)pieces, (void)num, (void)out;
    memcpy(row, state, 8);
    memcpy(row + 1, nonce, 8);
    row[2] = 0;
    memcpy(row + 2, nonce + 8, 4);
    row[2] |= 1ull << 63;
    for (at = (row[0] ^ row[1] * 0x9e3779b97f4a7c15u ^ row[2]) % SEEN; w->seen[at][2];
         at = (at + 1) % SEEN)
        assert_true(memcmp(w->seen[at], row, sizeof(row)) != 0);
    memcpy(w->seen[at], row, sizeof(row));
    assert_true(++w->num < SEEN * 3 / 4);
    return !w->fails;
}

static bool watch_open(void *arg, void *state, const uint8_t *nonce, const void *aad,
                       uint32_t aad_len, uint8_t *data, uint32_t len)
{
    (void)arg, (void)state, (void)nonce, (void)aad, (void)aad_len, (void)data, (void)len;
    return true;
}

static struct mrd_cipher watched(struct watch *w)
{
    return (struct mrd_cipher){.name = "watched",
                               .id = MRD_CIPHER_AES_128_GCM,
                               .key_bytes = 16,
                               .state_bytes = 16,
                               .arg = w,
                               .hmac = watch_hmac,
                               .expand = watch_expand,
                               .wipe = watch_wipe,
                               .seal = watch_seal,
                               .open = watch_open};
}

/*
 * Contexts that restart ten thousand times, forget each other, get new keys, send to the living, to the dead and
 * to anybody: never is a nonce used twice with one key.
 */
TEST_F(ends, mrd_seal_packet__no_nonce_twice)
{
    struct watch w = {.below = self->cipher, .seen = calloc(SEEN, sizeof(*w.seen))};
    struct mrd_cipher cipher = watched(&w);
    struct mrd_seal_config config = {.cipher = &cipher, .max_peers = 2};
    struct mrd_seal *end[5] = {NULL};
    uint64_t life[5] = {0}, dead[5] = {0};
    struct mrd_rng rng;

    mrd_rng_init(&rng, 1);
    for (unsigned restarts = 0; restarts < 10000;) {
        unsigned i = (unsigned)mrd_rng_below(&rng, 5), k = (unsigned)mrd_rng_below(&rng, 5);
        unsigned deed = (unsigned)mrd_rng_below(&rng, 40);

        if (!end[i] || deed == 0) {
            if (end[i])
                mrd_seal_destroy(end[i]);
            dead[i] = life[i];
            config.life = life[i] = mrd_rng_u64(&rng);
            /* Also where a new key begins soon. */
            config.number = deed % 2 ? (1u << MRD_SEAL_SUBKEY_BITS) - 9 : 0;
            end[i] = mrd_seal_create(&config, &heap);
            assert_true(mrd_seal_add_key(end[i], 1, key_1, true));
            restarts++;
        } else if (deed == 1) {
            assert_true(
                mrd_seal_add_key(end[i], 1 + restarts % 2, restarts % 2 ? key_2 : key_1, true));
        } else {
            seal(end[i], &self->p, BASE, 0, deed == 2 ? 0 : deed == 3 ? dead[k] : life[k]);
            if (end[k])
                (void)mrd_seal_open(end[k], &self->p.rx, restarts, &self->claim);
        }
    }
    assert_true(w.num > 300000);
    for (unsigned i = 0; i < 5; i++)
        mrd_seal_destroy(end[i]);
    free(w.seen);
}

/* A library that fails: packets are lost, none is in the clear, and later ones are well. */
TEST_F(ends, mrd_seal_packet__the_cipher_fails)
{
    struct watch w = {.below = self->cipher, .seen = calloc(SEEN, sizeof(*w.seen))};
    struct mrd_cipher cipher = watched(&w);
    struct mrd_seal_config config = {.cipher = &cipher, .life = 1, .max_peers = 2};
    struct mrd_seal *s = mrd_seal_create(&config, &heap);

    w.fails = true;
    assert_false(mrd_seal_add_key(s, 1, key_1, true));
    assert_false(mrd_seal_has_key(s, 1));
    w.fails = false;
    assert_true(mrd_seal_add_key(s, 1, key_1, true));
    for (uint64_t to = 0; to < 2; to++) {
        w.fails = true;
        seal(s, &self->p, 100, 50, 2 * to);
        for (uint32_t i = MRD_SEAL_HEAD_BYTES; i < self->p.rx.len; i++)
            assert_int_equal(self->p.memory[i], 0);
        assert_int_equal(open_packet(self, 0, &self->p, 0), MRD_SEAL_BAD_TAG);
        w.fails = false;
    }
    assert_true(mrd_seal_stats(s)->failed >= 3);
    mrd_seal_destroy(s);
    free(w.seen);
}
