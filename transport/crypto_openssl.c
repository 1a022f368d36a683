/* SPDX-License-Identifier: BSD-2-Clause */
/* Ciphers of libcrypto, 3.0 and later. */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>

#include "transport/crypto.h"

struct openssl {
    struct mrd_cipher cipher; /* first */
    EVP_CIPHER *type;
    EVP_MAC *hmac;
    EVP_MAC_CTX *hmac_context;
};

/* An expanded key. */
struct state {
    EVP_CIPHER_CTX *context;
};

static const struct {
    enum mrd_cipher_id id;
    uint32_t key_bytes;
    const char *type, *name;
} kinds[] = {
    {MRD_CIPHER_AES_128_GCM, 16, "AES-128-GCM", "AES-128-GCM by libcrypto"},
    {MRD_CIPHER_AES_256_GCM, 32, "AES-256-GCM", "AES-256-GCM by libcrypto"},
    {MRD_CIPHER_CHACHA20_POLY1305, 32, "ChaCha20-Poly1305", "ChaCha20-Poly1305 by libcrypto"},
};

static bool hmac(void *arg, const uint8_t *key, const void *data, uint32_t len, uint8_t *out)
{
    struct openssl *o = arg;
    size_t bytes = 0;

    return EVP_MAC_init(o->hmac_context, key, MRD_CIPHER_HASH_BYTES, NULL) &&
           EVP_MAC_update(o->hmac_context, data, len) &&
           EVP_MAC_final(o->hmac_context, out, &bytes, MRD_CIPHER_HASH_BYTES) &&
           bytes == MRD_CIPHER_HASH_BYTES;
}

static void wipe(void *arg, void *at)
{
    struct state *state = at;

    (void)arg;
    EVP_CIPHER_CTX_free(state->context); /* it wipes the key */
    state->context = NULL;
}

static bool expand(void *arg, void *at, const uint8_t *key)
{
    struct openssl *o = arg;
    struct state *state = at;

    state->context = EVP_CIPHER_CTX_new();
    if (state->context && EVP_EncryptInit_ex2(state->context, o->type, key, NULL, NULL))
        return true;
    wipe(arg, at);
    return false;
}

static bool seal(void *arg, void *at, const uint8_t *nonce, const void *aad, uint32_t aad_len,
                 const struct iovec *pieces, unsigned num, uint8_t *out)
{
    EVP_CIPHER_CTX *c = ((struct state *)at)->context;
    int n;

    (void)arg;
    if (!EVP_EncryptInit_ex2(c, NULL, NULL, nonce, NULL) ||
        !EVP_EncryptUpdate(c, NULL, &n, aad, (int)aad_len))
        return false;
    for (unsigned i = 0; i < num; i++) {
        if (!EVP_EncryptUpdate(c, out, &n, pieces[i].iov_base, (int)pieces[i].iov_len))
            return false;
        out += n;
    }
    return EVP_EncryptFinal_ex(c, out, &n) &&
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, MRD_CIPHER_TAG_BYTES, out);
}

static bool open(void *arg, void *at, const uint8_t *nonce, const void *aad, uint32_t aad_len,
                 uint8_t *data, uint32_t len)
{
    EVP_CIPHER_CTX *c = ((struct state *)at)->context;
    int n;

    (void)arg;
    return EVP_DecryptInit_ex2(c, NULL, NULL, nonce, NULL) &&
           EVP_DecryptUpdate(c, NULL, &n, aad, (int)aad_len) &&
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, MRD_CIPHER_TAG_BYTES, data + len) &&
           EVP_DecryptUpdate(c, data, &n, data, (int)len) &&
           EVP_DecryptFinal_ex(c, data + n, &n) > 0;
}

struct mrd_cipher *mrd_crypto_openssl(enum mrd_cipher_id id)
{
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char[]){"SHA256"}, 0),
        OSSL_PARAM_construct_end()};
    static const uint8_t no_key[MRD_CIPHER_HASH_BYTES];
    struct openssl *o = calloc(1, sizeof(*o));
    unsigned i = 0;

    while (kinds[i].id != id)
        i++;
    if (!o)
        return NULL;
    o->cipher = (struct mrd_cipher){.name = kinds[i].name,
                                    .id = id,
                                    .key_bytes = kinds[i].key_bytes,
                                    .state_bytes = sizeof(struct state),
                                    .arg = o,
                                    .hmac = hmac,
                                    .expand = expand,
                                    .wipe = wipe,
                                    .seal = seal,
                                    .open = open};
    o->type = EVP_CIPHER_fetch(NULL, kinds[i].type, NULL);
    o->hmac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);
    o->hmac_context = o->hmac ? EVP_MAC_CTX_new(o->hmac) : NULL;
    if (o->type && o->hmac_context && EVP_MAC_init(o->hmac_context, no_key, sizeof(no_key), params))
        return &o->cipher;
    mrd_crypto_openssl_close(&o->cipher);
    return NULL;
}

void mrd_crypto_openssl_close(struct mrd_cipher *cipher)
{
    struct openssl *o = (struct openssl *)cipher;

    EVP_MAC_CTX_free(o->hmac_context);
    EVP_MAC_free(o->hmac);
    EVP_CIPHER_free(o->type);
    free(o);
}
