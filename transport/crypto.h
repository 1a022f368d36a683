/* SPDX-License-Identifier: BSD-2-Clause */
/* Ciphers for sealed packets, of the libraries that this one was built with. */
#ifndef MRD_TRANSPORT_CRYPTO_H
#define MRD_TRANSPORT_CRYPTO_H

#include "core/cipher.h"

/* "aes-128-gcm", "aes-256-gcm", "chacha20-poly1305". False: there is no such one. */
bool mrd_crypto_parse(const char *name, enum mrd_cipher_id *id);

/*
 * The fastest one of that kind that this processor has. One for each context, which is given back by
 * mrd_crypto_close(). NULL with *error and mrd_error_set().
 */
const struct mrd_cipher *mrd_crypto_open(enum mrd_cipher_id id, int *error);
void mrd_crypto_close(const struct mrd_cipher *cipher);

/* By libcrypto, always; and by libipsec-mb: NULL if it does not have it, or this processor not what it needs. */
struct mrd_cipher *mrd_crypto_openssl(enum mrd_cipher_id id);
void mrd_crypto_openssl_close(struct mrd_cipher *cipher);
struct mrd_cipher *mrd_crypto_ipsec_mb(enum mrd_cipher_id id, struct mrd_cipher *hashes);
void mrd_crypto_ipsec_mb_close(struct mrd_cipher *cipher);

#endif
