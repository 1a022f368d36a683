/* SPDX-License-Identifier: BSD-2-Clause */
/* Ciphers of sealed packets, by each library that has them. */
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "tests/kit/kit.h"
#include "transport/crypto.h"

enum {
    IDS = 3,
    LEN_MAX = 9000,
    AAD_MAX = 64,
    TAG = MRD_CIPHER_TAG_BYTES,
    BUFFER = LEN_MAX + TAG + 64,
    PIECES = 17,
};

static const enum mrd_cipher_id ids[IDS] = {MRD_CIPHER_AES_128_GCM, MRD_CIPHER_AES_256_GCM,
                                            MRD_CIPHER_CHACHA20_POLY1305};

FIXTURE(ciphers)
{
    struct mrd_cipher *openssl[IDS], *ipsec_mb[IDS]; /* NULL: not here */
    struct mrd_cipher *all[2 * IDS];
    unsigned num;
};

FIXTURE_SETUP(ciphers)
{
    for (unsigned i = 0; i < IDS; i++) {
        self->openssl[i] = mrd_crypto_openssl(ids[i]);
        assert_non_null(self->openssl[i]);
        self->all[self->num++] = self->openssl[i];
        self->ipsec_mb[i] = mrd_crypto_ipsec_mb(ids[i], self->openssl[i]);
        if (self->ipsec_mb[i])
            self->all[self->num++] = self->ipsec_mb[i];
    }
}

FIXTURE_TEARDOWN(ciphers)
{
    for (unsigned i = 0; i < IDS; i++) {
        if (self->ipsec_mb[i])
            mrd_crypto_ipsec_mb_close(self->ipsec_mb[i]);
        mrd_crypto_openssl_close(self->openssl[i]);
    }
}

/* A cipher with a key; release() gives it back. */
struct keyed {
    const struct mrd_cipher *cipher;
    void *state;
    size_t state_bytes;
};

static struct keyed expand(const struct mrd_cipher *cipher, const uint8_t *key)
{
    struct keyed k = {.cipher = cipher,
                      .state_bytes = ((size_t)cipher->state_bytes + 63) / 64 * 64};

    k.state = aligned_alloc(64, k.state_bytes);
    assert_non_null(k.state);
    memset(k.state, 0, k.state_bytes);
    assert_true(cipher->expand(cipher->arg, k.state, key));
    return k;
}

/* Nothing of the key is left in its memory. */
static void release(struct keyed *k)
{
    const uint8_t *bytes = k->state;

    k->cipher->wipe(k->cipher->arg, k->state);
    for (size_t i = 0; i < k->state_bytes; i++)
        assert_int_equal(bytes[i], 0);
    free(k->state);
}

struct message {
    uint8_t nonce[MRD_CIPHER_NONCE_BYTES], aad[AAD_MAX], data[LEN_MAX];
    uint32_t aad_len, len;
};

static void fill(struct mrd_rng *rng, uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)mrd_rng_u64(rng);
}

static void fill_message(struct mrd_rng *rng, struct message *m, uint32_t len)
{
    fill(rng, m->nonce, sizeof(m->nonce));
    m->aad_len = mrd_rng_below(rng, AAD_MAX + 1);
    fill(rng, m->aad, m->aad_len);
    m->len = len;
    fill(rng, m->data, len);
}

/* What is behind the tag stays as it was. */
static void seal_pieces(struct keyed *k, const struct message *m, const struct iovec *pieces,
                        unsigned num, uint8_t *out)
{
    uint8_t *behind = out + m->len + TAG;

    memset(behind, 0xa5, 64);
    assert_true(
        k->cipher->seal(k->cipher->arg, k->state, m->nonce, m->aad, m->aad_len, pieces, num, out));
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(behind[i], 0xa5);
}

static void seal(struct keyed *k, const struct message *m, uint8_t *out)
{
    const struct iovec piece = {(void *)(uintptr_t)m->data, m->len};

    seal_pieces(k, m, &piece, 1, out);
}

static bool open_sealed(struct keyed *k, const struct message *m, uint8_t *sealed)
{
    return k->cipher->open(k->cipher->arg, k->state, m->nonce, m->aad, m->aad_len, sealed, m->len);
}

static size_t unhex(const char *hex, uint8_t *out)
{
    size_t len = strlen(hex) / 2;

    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)strtoul((char[]){hex[2 * i], hex[2 * i + 1], 0}, NULL, 16);
    return len;
}

struct answer {
    enum mrd_cipher_id id;
    const char *key, *nonce, *aad, *data, *sealed; /* with its tag */
};

#define GCM_KEY   "feffe9928665731c6d6a8f9467308308"
#define GCM_NONCE "cafebabefacedbaddecaf888"
#define GCM_AAD   "feedfacedeadbeeffeedfacedeadbeefabaddad2"
#define GCM_DATA                                                                                   \
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"                             \
    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
#define ZEROS_16 "00000000000000000000000000000000"
#define ZEROS_12 "000000000000000000000000"

static const struct answer answers[] = {
    /* McGrew and Viega, The Galois/Counter Mode of Operation: test cases 1, 2, 4, 13, 14, 16. */
    {MRD_CIPHER_AES_128_GCM, ZEROS_16, ZEROS_12, "", "", "58e2fccefa7e3061367f1d57a4e7455a"},
    {MRD_CIPHER_AES_128_GCM, ZEROS_16, ZEROS_12, "", ZEROS_16,
     "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf"},
    {MRD_CIPHER_AES_128_GCM, GCM_KEY, GCM_NONCE, GCM_AAD, GCM_DATA,
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
     "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
     "5bc94fbc3221a5db94fae95ae7121a47"},
    {MRD_CIPHER_AES_256_GCM, ZEROS_16 ZEROS_16, ZEROS_12, "", "",
     "530f8afbc74536b9a963b4f1c4cb738b"},
    {MRD_CIPHER_AES_256_GCM, ZEROS_16 ZEROS_16, ZEROS_12, "", ZEROS_16,
     "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"},
    {MRD_CIPHER_AES_256_GCM, GCM_KEY GCM_KEY, GCM_NONCE, GCM_AAD, GCM_DATA,
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
     "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
     "76fc6ece0f4e1768cddf8853bb2d551b"},
    /* RFC 8439, 2.8.2 */
    {MRD_CIPHER_CHACHA20_POLY1305,
     "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", "070000004041424344454647",
     "50515253c0c1c2c3c4c5c6c7",
     "4c616469657320616e642047656e746c656d656e206f662074686520636c6173"
     "73206f66202739393a204966204920636f756c64206f6666657220796f75206f"
     "6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73"
     "637265656e20776f756c642062652069742e",
     "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
     "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
     "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
     "3ff4def08e4b7a9de576d26586cec64b6116"
     "1ae10b594f09e26a7e902ecbd0600691"},
};

static void check_answer(const struct mrd_cipher *cipher, const struct answer *a)
{
    static struct message m;
    uint8_t key[MRD_CIPHER_KEY_BYTES_MAX], expected[256], out[256 + 64];
    struct keyed k;

    assert_int_equal(unhex(a->key, key), cipher->key_bytes);
    assert_int_equal(unhex(a->nonce, m.nonce), MRD_CIPHER_NONCE_BYTES);
    m.aad_len = (uint32_t)unhex(a->aad, m.aad);
    m.len = (uint32_t)unhex(a->data, m.data);
    assert_int_equal(unhex(a->sealed, expected), m.len + TAG);
    k = expand(cipher, key);
    seal(&k, &m, out);
    assert_memory_equal(out, expected, m.len + TAG);
    assert_true(open_sealed(&k, &m, out));
    assert_memory_equal(out, m.data, m.len);
    release(&k);
}

TEST_F(ciphers, mrd_crypto__known_answers)
{
    for (unsigned c = 0; c < self->num; c++) {
        unsigned checked = 0;

        for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
            if (answers[i].id != self->all[c]->id)
                continue;
            check_answer(self->all[c], &answers[i]);
            checked++;
        }
        assert_true(checked > 0);
    }
}

/* RFC 4231, test cases 1 to 4: zeros behind a key change nothing. */
TEST_F(ciphers, mrd_crypto__hmac)
{
    static const struct {
        const char *key, *data, *expected;
    } rows[] = {
        {"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "4869205468657265",
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "dddddddddddddddddddddddddddddddddddddddddddddddddd"
         "dddddddddddddddddddddddddddddddddddddddddddddddddd",
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {"0102030405060708090a0b0c0d0e0f10111213141516171819",
         "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"
         "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd",
         "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
    };

    for (unsigned c = 0; c < self->num; c++) {
        for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            uint8_t key[32] = {0}, data[64], expected[MRD_CIPHER_HASH_BYTES];
            uint8_t out[MRD_CIPHER_HASH_BYTES];
            uint32_t len = (uint32_t)unhex(rows[i].data, data);

            unhex(rows[i].key, key);
            unhex(rows[i].expected, expected);
            assert_true(self->all[c]->hmac(self->all[c]->arg, key, data, len, out));
            assert_memory_equal(out, expected, sizeof(out));
        }
    }
}

/* Cuts the message into `num` pieces, some of them empty, each in memory of its own. */
static void cut(struct mrd_rng *rng, const struct message *m, struct iovec *pieces, unsigned num)
{
    uint32_t at = 0;

    for (unsigned i = 0; i < num; i++) {
        uint32_t left = m->len - at;
        uint32_t bytes = i == num - 1 ? left : mrd_rng_below(rng, left * 2 / (num - i) + 1);

        pieces[i] = (struct iovec){malloc(bytes + 1), bytes};
        assert_non_null(pieces[i].iov_base);
        memcpy(pieces[i].iov_base, m->data + at, bytes);
        at += bytes;
    }
}

static void check_pieces(struct keyed *k, struct mrd_rng *rng)
{
    static struct message m;
    static uint8_t whole[BUFFER], out[BUFFER];
    struct iovec pieces[PIECES];
    unsigned num = 1 + mrd_rng_below(rng, PIECES);
    void *first;

    fill_message(rng, &m, mrd_rng_below(rng, mrd_rng_below(rng, 2) ? 200 : LEN_MAX + 1));
    seal(k, &m, whole);
    cut(rng, &m, pieces, num);
    seal_pieces(k, &m, pieces, num, out);
    assert_memory_equal(out, whole, m.len + TAG);
    /* The first one is there already. */
    first = pieces[0].iov_base;
    memset(out, 0, sizeof(out));
    memcpy(out, first, pieces[0].iov_len);
    pieces[0].iov_base = out;
    seal_pieces(k, &m, pieces, num, out);
    assert_memory_equal(out, whole, m.len + TAG);
    pieces[0].iov_base = first;
    for (unsigned i = 0; i < num; i++)
        free(pieces[i].iov_base);
}

TEST_F(ciphers, mrd_crypto__seals_in_pieces)
{
    for (unsigned c = 0; c < self->num; c++) {
        uint8_t key[MRD_CIPHER_KEY_BYTES_MAX];
        struct mrd_rng rng;
        struct keyed k;

        mrd_rng_init(&rng, c + 1);
        fill(&rng, key, sizeof(key));
        k = expand(self->all[c], key);
        for (unsigned i = 0; i < 1000; i++)
            check_pieces(&k, &rng);
        release(&k);
    }
}

/* No piece at all is an empty message. */
TEST_F(ciphers, mrd_crypto__seals_no_piece)
{
    static const struct message empty;
    static const uint8_t key[MRD_CIPHER_KEY_BYTES_MAX];

    for (unsigned c = 0; c < self->num; c++) {
        uint8_t one[TAG + 64], none[TAG + 64];
        struct keyed k = expand(self->all[c], key);

        seal(&k, &empty, one);
        seal_pieces(&k, &empty, NULL, 0, none);
        assert_memory_equal(one, none, TAG);
        release(&k);
    }
}

/* Also with one state for both ways, as where the two are of one library. */
static void check_opens(struct keyed *sender, struct keyed *receiver)
{
    static struct message m;
    static uint8_t sealed[BUFFER];
    struct mrd_rng rng;

    mrd_rng_init(&rng, 7);
    for (uint32_t len = 0; len <= LEN_MAX; len++) {
        fill(&rng, m.nonce, sizeof(m.nonce));
        m.aad_len = len % (AAD_MAX + 1);
        m.len = len;
        if (len % 100 == 0)
            fill_message(&rng, &m, len);
        seal(sender, &m, sealed);
        assert_true(open_sealed(receiver, &m, sealed));
        assert_memory_equal(sealed, m.data, len);
    }
}

TEST_F(ciphers, mrd_crypto__opens_what_the_others_sealed)
{
    for (unsigned a = 0; a < self->num; a++) {
        for (unsigned b = 0; b < self->num; b++) {
            uint8_t key[MRD_CIPHER_KEY_BYTES_MAX];
            struct keyed sender, receiver;

            if (self->all[a]->id != self->all[b]->id)
                continue;
            for (unsigned i = 0; i < sizeof(key); i++)
                key[i] = (uint8_t)(7 * i + a);
            sender = expand(self->all[a], key);
            receiver = expand(self->all[b], key);
            check_opens(&sender, a == b ? &sender : &receiver);
            release(&sender);
            release(&receiver);
        }
    }
}

/* A state of one key knows nothing of another's, though they are used in turn. */
TEST_F(ciphers, mrd_crypto__keys_in_turn)
{
    static struct message m;
    uint8_t key[2][MRD_CIPHER_KEY_BYTES_MAX], sealed[2][256], other[256];
    struct mrd_rng rng;

    mrd_rng_init(&rng, 3);
    fill(&rng, key[0], sizeof(key));
    fill_message(&rng, &m, 100);
    for (unsigned c = 0; c < self->num; c++) {
        struct keyed k[2] = {expand(self->all[c], key[0]), expand(self->all[c], key[1])};

        seal(&k[0], &m, sealed[0]);
        seal(&k[1], &m, sealed[1]);
        assert_memory_not_equal(sealed[0], sealed[1], m.len);
        memcpy(other, sealed[0], sizeof(other));
        assert_false(open_sealed(&k[1], &m, other));
        for (unsigned i = 0; i < 2; i++) {
            assert_true(open_sealed(&k[i], &m, sealed[i]));
            assert_memory_equal(sealed[i], m.data, m.len);
        }
        release(&k[0]);
        release(&k[1]);
    }
}

struct sample {
    struct message m;
    uint8_t sealed[BUFFER];
};

static bool opens(struct keyed *k, const struct sample *s)
{
    static struct sample copy;

    copy = *s; /* also a refused packet is decrypted */
    return open_sealed(k, &copy.m, copy.sealed);
}

/* Each bit of `bytes`, which is a part of *s, matters. */
static void check_flips(struct keyed *k, const struct sample *s, uint8_t *bytes, size_t len)
{
    for (size_t bit = 0; bit < 8 * len; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(opens(k, s));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(opens(k, s));
}

static void check_lengths(struct keyed *k, struct sample *s)
{
    for (int more = s->m.len ? -1 : 1; more <= 1; more += 2) {
        s->m.len += (uint32_t)more;
        assert_false(opens(k, s));
        s->m.len -= (uint32_t)more;
        s->m.aad_len += (uint32_t)more;
        assert_false(opens(k, s));
        s->m.aad_len -= (uint32_t)more;
    }
}

TEST_F(ciphers, mrd_crypto__refuses_what_was_changed)
{
    static const uint8_t key[MRD_CIPHER_KEY_BYTES_MAX] = {1, 2, 3};
    static struct sample s;
    struct mrd_rng rng;

    mrd_rng_init(&rng, 11);
    for (unsigned c = 0; c < self->num; c++) {
        for (uint32_t len = 0; len <= 150; len += 75) {
            struct keyed k = expand(self->all[c], key);

            fill_message(&rng, &s.m, len);
            s.m.aad_len = 32;
            seal(&k, &s.m, s.sealed);
            check_flips(&k, &s, s.sealed, len + TAG);
            check_flips(&k, &s, s.m.aad, s.m.aad_len);
            check_flips(&k, &s, s.m.nonce, sizeof(s.m.nonce));
            check_lengths(&k, &s);
            assert_true(opens(&k, &s));
            release(&k);
        }
    }
}

/* Each bit of a key counts. */
TEST_F(ciphers, mrd_crypto__refuses_other_keys)
{
    static struct sample s;
    uint8_t key[MRD_CIPHER_KEY_BYTES_MAX] = {4, 5, 6};
    struct mrd_rng rng;

    mrd_rng_init(&rng, 12);
    fill_message(&rng, &s.m, 50);
    for (unsigned c = 0; c < self->num; c++) {
        struct keyed k = expand(self->all[c], key);

        seal(&k, &s.m, s.sealed);
        assert_true(opens(&k, &s));
        release(&k);
        for (unsigned bit = 0; bit < 8 * self->all[c]->key_bytes; bit++) {
            key[bit / 8] ^= (uint8_t)(1 << bit % 8);
            k = expand(self->all[c], key);
            assert_false(opens(&k, &s));
            release(&k);
            key[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}

TEST(mrd_crypto_parse__names)
{
    static const struct {
        const char *name;
        int id; /* 0: there is no such one */
    } rows[] = {
        {"aes-128-gcm", MRD_CIPHER_AES_128_GCM},
        {"aes-256-gcm", MRD_CIPHER_AES_256_GCM},
        {"chacha20-poly1305", MRD_CIPHER_CHACHA20_POLY1305},
        {"", 0},
        {"aes-128", 0},
        {"aes-192-gcm", 0},
        {"AES-128-GCM", 0},
        {"aes-128-gcm ", 0},
        {" aes-128-gcm", 0},
        {"none", 0},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum mrd_cipher_id id = (enum mrd_cipher_id)0;

        assert_int_equal(mrd_crypto_parse(rows[i].name, &id), rows[i].id != 0);
        assert_int_equal(id, rows[i].id);
    }
}

static void forget_environment(void)
{
    unsetenv("MRD_CRYPTO");
}

/* The cipher is of libipsec-mb if it is expected, and else of libcrypto; it works in either case. */
static void check_open(enum mrd_cipher_id id, bool ipsec_mb)
{
    int error = 0;
    const struct mrd_cipher *cipher = mrd_crypto_open(id, &error);

    assert_non_null(cipher);
    assert_int_equal(error, 0);
    assert_int_equal(cipher->id, id);
    assert_true(cipher->key_bytes <= MRD_CIPHER_KEY_BYTES_MAX);
    assert_non_null(strstr(cipher->name, ipsec_mb ? " by libipsec-mb" : " by libcrypto"));
    for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        if (answers[i].id == id)
            check_answer(cipher, &answers[i]);
    mrd_crypto_close(cipher);
}

TEST_F(ciphers, mrd_crypto_open__which_library)
{
    kit_after_test(forget_environment);
    assert_null(self->ipsec_mb[2]); /* AES only */
    for (unsigned i = 0; i < IDS; i++) {
        unsetenv("MRD_CRYPTO");
        check_open(ids[i], self->ipsec_mb[i]);
        setenv("MRD_CRYPTO", "libcrypto", 1);
        check_open(ids[i], false);
    }
}
