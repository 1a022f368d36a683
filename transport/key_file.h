/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of keys for sealed packets: mrd_keys(5). */
#ifndef MRD_TRANSPORT_KEY_FILE_H
#define MRD_TRANSPORT_KEY_FILE_H

#include <stddef.h>

#include "transport/context.h"

enum {
    MRD_KEY_FILE_KEYS_MAX = MRD_SEALING_KEYS_MAX,
    MRD_KEY_TEXT_BYTES = 45
}; /* base64 of a key, and a NUL */

struct mrd_key_file {
    enum mrd_cipher_id cipher;
    unsigned num; /* the first is the one to send with */
    struct mrd_key_file_key {
        uint32_t id;
        uint8_t key[MRD_SEAL_KEY_BYTES];
    } key[MRD_KEY_FILE_KEYS_MAX];
};

/* 0, or -errno with mrd_error_set(): then it is all zero. The caller wipes it. */
int mrd_key_file_read(const char *path, struct mrd_key_file *file);
/* Parses its text, which is changed. 0, or -EINVAL with mrd_error_set(), in which `path` is named. */
int mrd_key_file_parse(const char *path, char *text, struct mrd_key_file *file);

#endif
