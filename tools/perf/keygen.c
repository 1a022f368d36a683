/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/keygen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/perf/options.h"
#include "transport/crypto.h"
#include "transport/key_file.h"

enum { TEXT_BYTES = 1024 }; /* of a file with two keys */

static const char *name_of(enum mrd_cipher_id id)
{
    for (const char *const *name = perf_cipher_names; *name; name++) {
        enum mrd_cipher_id found;

        if (mrd_crypto_parse(*name, &found) && found == id)
            return *name;
    }
    return perf_cipher_names[0];
}

/* Base64 of RFC 4648: 32 bytes are 43 digits and a '='. */
static void format_key(char *text, const uint8_t *key)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (unsigned i = 0; i < MRD_KEY_TEXT_BYTES - 2; i++) {
        unsigned at = i * 6 / 8, word = (unsigned)key[at] << 8;

        if (at + 1 < MRD_SEAL_KEY_BYTES)
            word |= key[at + 1];
        text[i] = digits[word >> (10 - i * 6 % 8) & 63];
    }
    strcpy(text + MRD_KEY_TEXT_BYTES - 2, "=");
}

static int write_keys(int fd, const struct mrd_key_file *keys)
{
    char text[TEXT_BYTES], key[MRD_KEY_TEXT_BYTES];
    int len = snprintf(text, sizeof(text),
                       "# Keys of mrd: see mrd_keys(5). The first is sent with. Whoever can read "
                       "this file can\n# read and forge the packets: keep it secret.\n"
                       "cipher %s\n",
                       name_of(keys->cipher));

    for (unsigned i = 0; i < keys->num; i++) {
        format_key(key, keys->key[i].key);
        len +=
            snprintf(text + len, sizeof(text) - (size_t)len, "key %u %s\n", keys->key[i].id, key);
    }
    bool good = write(fd, text, (size_t)len) == len && fsync(fd) == 0;
    explicit_bzero(text, sizeof(text));
    explicit_bzero(key, sizeof(key));
    return good ? 0 : -1;
}

/* A fresh key becomes the first; of the others the former first stays. */
static int push_key(struct mrd_key_file *keys, uint32_t id)
{
    keys->key[1] = keys->key[0];
    keys->num = keys->num ? 2 : 1;
    keys->key[0].id = id;
    return getrandom(keys->key[0].key, MRD_SEAL_KEY_BYTES, 0) == MRD_SEAL_KEY_BYTES ? 0 : -1;
}

static int make_file(const struct perf_keygen *k, struct mrd_key_file *keys)
{
    int fd = open(k->file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), error;

    if (fd < 0 && errno == EEXIST)
        return perf_complain(PERF_EXIT_FAILED,
                             "%s is there already, and is left as it is: --add puts a new key in",
                             k->file);
    if (fd < 0)
        return perf_complain(PERF_EXIT_FAILED, "%s: %s", k->file, strerror(errno));
    (void)mrd_crypto_parse(k->cipher, &keys->cipher);
    error = fchmod(fd, 0600) || push_key(keys, k->id) || write_keys(fd, keys) ? errno : 0;
    if (close(fd) && !error)
        error = errno;
    if (!error)
        return PERF_EXIT_OK;
    unlink(k->file);
    return perf_complain(PERF_EXIT_FAILED, "%s: %s", k->file, strerror(error));
}

/* A new file in place of the old one, with its owner: who reads it finds the one or the other. */
static int replace_file(const char *path, const struct mrd_key_file *keys)
{
    char name[PATH_MAX + 8];
    struct stat s;
    int error;

    snprintf(name, sizeof(name), "%s.XXXXXX", path);
    int fd = mkstemp(name); /* mode 0600 */

    if (fd < 0)
        return errno;
    error = stat(path, &s) || (s.st_uid != geteuid() && fchown(fd, s.st_uid, s.st_gid)) ||
                    write_keys(fd, keys)
                ? errno
                : 0;
    if (close(fd) && !error)
        error = errno;
    if (!error && rename(name, path))
        error = errno;
    if (error)
        unlink(name);
    return error;
}

static bool has_id(const struct mrd_key_file *keys, uint32_t id)
{
    return id == keys->key[0].id || (keys->num > 1 && id == keys->key[1].id);
}

/* The one after the first key's, or the next that no key has. */
static uint32_t next_id(const struct mrd_key_file *keys)
{
    uint32_t id = keys->key[0].id;

    do
        id = id < MRD_SEAL_KEY_ID_MAX ? id + 1 : 0;
    while (has_id(keys, id));
    return id;
}

static int add_key(const struct perf_keygen *k, struct mrd_key_file *keys)
{
    char path[PATH_MAX]; /* a link stays one */

    if (!realpath(k->file, path))
        return perf_complain(PERF_EXIT_FAILED, "%s: %s", k->file, strerror(errno));
    if (mrd_key_file_read(path, keys))
        return perf_complain(PERF_EXIT_FAILED, "%s", mrd_last_error());
    if (!k->next_id && has_id(keys, k->id))
        return perf_complain(PERF_EXIT_FAILED, "%s has a key %u already: another --id", path,
                             k->id);
    if (push_key(keys, k->next_id ? next_id(keys) : k->id))
        return perf_complain(PERF_EXIT_FAILED, "no randomness: %s", strerror(errno));
    int error = replace_file(path, keys);
    if (error)
        return perf_complain(PERF_EXIT_FAILED, "%s: %s", path, strerror(error));
    return PERF_EXIT_OK;
}

int perf_keygen_run(const struct perf_options *o)
{
    struct mrd_key_file keys = {0};
    int code = o->keygen.add ? add_key(&o->keygen, &keys) : make_file(&o->keygen, &keys);

    if (code == PERF_EXIT_OK)
        printf("%s: key %u is the first of %u, for %s\n", o->keygen.file, keys.key[0].id, keys.num,
               name_of(keys.cipher));
    explicit_bzero(&keys, sizeof(keys));
    return code;
}
