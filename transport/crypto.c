/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/crypto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/error.h"

/* What a context has: the cipher, and libcrypto's, which has the hashes. */
struct crypto {
    struct mrd_cipher cipher; /* first: a copy of one of the two */
    struct mrd_cipher *openssl, *ipsec_mb;
};

bool mrd_crypto_parse(const char *name, enum mrd_cipher_id *id)
{
    static const struct {
        const char *name;
        enum mrd_cipher_id id;
    } names[] = {{"aes-128-gcm", MRD_CIPHER_AES_128_GCM},
                 {"aes-256-gcm", MRD_CIPHER_AES_256_GCM},
                 {"chacha20-poly1305", MRD_CIPHER_CHACHA20_POLY1305}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(name, names[i].name)) {
            *id = names[i].id;
            return true;
        }
    return false;
}

/* MRD_CRYPTO=libcrypto: not the other one, also where it is faster. */
static bool may_use_ipsec_mb(void)
{
    const char *text = getenv("MRD_CRYPTO");

    return !text || strcmp(text, "libcrypto");
}

const struct mrd_cipher *mrd_crypto_open(enum mrd_cipher_id id, int *error)
{
    struct crypto *c = calloc(1, sizeof(*c));

    if (c)
        c->openssl = mrd_crypto_openssl(id);
    if (!c || !c->openssl) {
        free(c);
        mrd_error_set("libcrypto has no such cipher, or no memory");
        *error = -ENOMEM;
        return NULL;
    }
    if (may_use_ipsec_mb())
        c->ipsec_mb = mrd_crypto_ipsec_mb(id, c->openssl);
    c->cipher = c->ipsec_mb ? *c->ipsec_mb : *c->openssl;
    return &c->cipher;
}

void mrd_crypto_close(const struct mrd_cipher *cipher)
{
    struct crypto *c = (struct crypto *)(uintptr_t)cipher;

    if (c->ipsec_mb)
        mrd_crypto_ipsec_mb_close(c->ipsec_mb);
    mrd_crypto_openssl_close(c->openssl);
    free(c);
}
