/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What sealing needs of a library of ciphers. It comes from outside, as memory does; all calls for one
 * context come from one thread at a time.
 */
#ifndef MRD_CORE_CIPHER_H
#define MRD_CORE_CIPHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h> /* struct iovec, the type only */

/* Clears memory also where nobody reads it any more. */
static inline void mrd_wipe(void *memory, size_t bytes)
{
    memset(memory, 0, bytes);
    __asm__ volatile("" : : "r"(memory) : "memory");
}

enum {
    MRD_CIPHER_NONCE_BYTES = 12,
    MRD_CIPHER_TAG_BYTES = 16,
    MRD_CIPHER_KEY_BYTES_MAX = 32,
    MRD_CIPHER_HASH_BYTES = 32,
};

/* An AEAD of RFC 5116 with nonces of 12 bytes and tags of 16; the number goes into keys. */
enum mrd_cipher_id {
    MRD_CIPHER_AES_128_GCM = 1,
    MRD_CIPHER_AES_256_GCM = 2,
    MRD_CIPHER_CHACHA20_POLY1305 = 3, /* RFC 8439 */
};

struct mrd_cipher {
    const char *name; /* of the algorithm and the library */
    enum mrd_cipher_id id;
    uint32_t key_bytes;   /* at most MRD_CIPHER_KEY_BYTES_MAX */
    uint32_t state_bytes; /* of an expanded key, which is aligned to 64 bytes */
    void *arg;
    /*
     * HMAC-SHA256 of RFC 2104, of a key of 32 bytes, into out[MRD_CIPHER_HASH_BYTES]. Like all of
     * these: false if the library fails, for example for want of memory.
     */
    bool (*hmac)(void *arg, const uint8_t *key, const void *data, uint32_t len, uint8_t *out);
    /* Expands a key into zeroed memory. */
    bool (*expand)(void *arg, void *state, const uint8_t *key);
    /* Wipes an expanded key. */
    void (*wipe)(void *arg, void *state);
    /*
     * Encrypts `num` pieces to `out`, and puts the tag behind them. The first piece may be at `out`
     * itself.
     */
    bool (*seal)(void *arg, void *state, const uint8_t *nonce, const void *aad, uint32_t aad_len,
                 const struct iovec *pieces, unsigned num, uint8_t *out);
    /* Decrypts in place `len` bytes, whose tag follows them. False: the tag is wrong. */
    bool (*open)(void *arg, void *state, const uint8_t *nonce, const void *aad, uint32_t aad_len,
                 uint8_t *data, uint32_t len);
};

#endif
