/* SPDX-License-Identifier: BSD-2-Clause */
/* AES-GCM of libipsec-mb, which is several times as fast as libcrypto 3.0 where there is VAES. */
#include "transport/crypto.h"

#ifdef MRD_HAVE_IPSEC_MB

#include <intel-ipsec-mb.h>
#include <stdlib.h>

struct ipsec_mb {
    struct mrd_cipher cipher; /* first */
    struct mrd_cipher *hashes;
    IMB_MGR *mgr;
};

static bool hmac(void *arg, const uint8_t *key, const void *data, uint32_t len, uint8_t *out)
{
    struct ipsec_mb *m = arg;

    return m->hashes->hmac(m->hashes->arg, key, data, len, out);
}

static void wipe(void *arg, void *state)
{
    (void)arg;
    mrd_wipe(state, sizeof(struct gcm_key_data));
}

static bool expand_128(void *arg, void *state, const uint8_t *key)
{
    struct ipsec_mb *m = arg;

    IMB_AES128_GCM_PRE(m->mgr, key, state);
    return true;
}

static bool expand_256(void *arg, void *state, const uint8_t *key)
{
    struct ipsec_mb *m = arg;

    IMB_AES256_GCM_PRE(m->mgr, key, state);
    return true;
}

static bool seal_128(void *arg, void *state, const uint8_t *nonce, const void *aad,
                     uint32_t aad_len, const struct iovec *pieces, unsigned num, uint8_t *out)
{
    struct ipsec_mb *m = arg;
    struct gcm_context_data context;

    IMB_AES128_GCM_INIT(m->mgr, state, &context, nonce, aad, aad_len);
    for (unsigned i = 0; i < num; i++) {
        IMB_AES128_GCM_ENC_UPDATE(m->mgr, state, &context, out, pieces[i].iov_base,
                                  pieces[i].iov_len);
        out += pieces[i].iov_len;
    }
    IMB_AES128_GCM_ENC_FINALIZE(m->mgr, state, &context, out, MRD_CIPHER_TAG_BYTES);
    return true;
}

static bool seal_256(void *arg, void *state, const uint8_t *nonce, const void *aad,
                     uint32_t aad_len, const struct iovec *pieces, unsigned num, uint8_t *out)
{
    struct ipsec_mb *m = arg;
    struct gcm_context_data context;

    IMB_AES256_GCM_INIT(m->mgr, state, &context, nonce, aad, aad_len);
    for (unsigned i = 0; i < num; i++) {
        IMB_AES256_GCM_ENC_UPDATE(m->mgr, state, &context, out, pieces[i].iov_base,
                                  pieces[i].iov_len);
        out += pieces[i].iov_len;
    }
    IMB_AES256_GCM_ENC_FINALIZE(m->mgr, state, &context, out, MRD_CIPHER_TAG_BYTES);
    return true;
}

/* In a time that does not depend on where they differ. */
static bool is_tag(const uint8_t *a, const uint8_t *b)
{
    unsigned differ = 0;

    for (unsigned i = 0; i < MRD_CIPHER_TAG_BYTES; i++)
        differ |= a[i] ^ b[i];
    return !differ;
}

static bool open_128(void *arg, void *state, const uint8_t *nonce, const void *aad,
                     uint32_t aad_len, uint8_t *data, uint32_t len)
{
    struct ipsec_mb *m = arg;
    struct gcm_context_data context;
    uint8_t tag[MRD_CIPHER_TAG_BYTES];

    IMB_AES128_GCM_DEC(m->mgr, state, &context, data, data, len, nonce, aad, aad_len, tag,
                       sizeof(tag));
    return is_tag(tag, data + len);
}

static bool open_256(void *arg, void *state, const uint8_t *nonce, const void *aad,
                     uint32_t aad_len, uint8_t *data, uint32_t len)
{
    struct ipsec_mb *m = arg;
    struct gcm_context_data context;
    uint8_t tag[MRD_CIPHER_TAG_BYTES];

    IMB_AES256_GCM_DEC(m->mgr, state, &context, data, data, len, nonce, aad, aad_len, tag,
                       sizeof(tag));
    return is_tag(tag, data + len);
}

struct mrd_cipher *mrd_crypto_ipsec_mb(enum mrd_cipher_id id, struct mrd_cipher *hashes)
{
    bool is_128 = id == MRD_CIPHER_AES_128_GCM;
    struct ipsec_mb *m;

    if (!is_128 && id != MRD_CIPHER_AES_256_GCM)
        return NULL;
    m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->cipher = (struct mrd_cipher){.name = is_128 ? "AES-128-GCM by libipsec-mb"
                                                   : "AES-256-GCM by libipsec-mb",
                                    .id = id,
                                    .key_bytes = is_128 ? 16 : 32,
                                    .state_bytes = sizeof(struct gcm_key_data),
                                    .arg = m,
                                    .hmac = hmac,
                                    .expand = is_128 ? expand_128 : expand_256,
                                    .wipe = wipe,
                                    .seal = is_128 ? seal_128 : seal_256,
                                    .open = is_128 ? open_128 : open_256};
    m->hashes = hashes;
    m->mgr = alloc_mb_mgr(0);
    if (m->mgr)
        init_mb_mgr_auto(m->mgr, NULL);
    if (m->mgr && m->mgr->features & IMB_FEATURE_AESNI)
        return &m->cipher;
    mrd_crypto_ipsec_mb_close(&m->cipher);
    return NULL;
}

void mrd_crypto_ipsec_mb_close(struct mrd_cipher *cipher)
{
    struct ipsec_mb *m = (struct ipsec_mb *)cipher;

    if (m->mgr)
        free_mb_mgr(m->mgr);
    free(m);
}

#else

struct mrd_cipher *mrd_crypto_ipsec_mb(enum mrd_cipher_id id, struct mrd_cipher *hashes)
{
    (void)id;
    (void)hashes;
    return NULL;
}

void mrd_crypto_ipsec_mb_close(struct mrd_cipher *cipher)
{
    (void)cipher;
}

#endif
