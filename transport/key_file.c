/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/crypto.h"
#include "transport/error.h"

enum { TEXT_MAX = 4096 };

#define INVALID(...) (mrd_error_set(__VA_ARGS__), -EINVAL)

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* Base64 of RFC 4648, of exactly one key. */
static bool parse_key(const char *text, uint8_t *key)
{
    uint32_t word = 0;
    unsigned bytes = 0;

    if (strlen(text) != MRD_KEY_TEXT_BYTES - 1 || text[MRD_KEY_TEXT_BYTES - 2] != '=')
        return false;
    for (unsigned i = 0; i < MRD_KEY_TEXT_BYTES - 2; i++) {
        int digit = digit_of(text[i]);

        if (digit < 0)
            return false;
        word = word << 6 | (uint32_t)digit;
        if (i % 4) /* the first of four digits completes no byte */
            key[bytes++] = (uint8_t)(word >> (6 - 2 * (i % 4)));
    }
    return !(word & 3); /* the last digit has two bits of no byte */
}

static bool parse_id(const char *text, uint32_t *id)
{
    unsigned long value;
    char *rest;

    errno = 0;
    value = strtoul(text, &rest, 10);
    *id = (uint32_t)value;
    return !errno && *text >= '0' && *text <= '9' && !*rest && value <= MRD_SEAL_KEY_ID_MAX;
}

/* "key ID BASE64" */
static int take_key(const char *path, unsigned line, char **words, struct mrd_key_file *file)
{
    const char *id = strtok_r(NULL, " \t\r", words), *text = strtok_r(NULL, " \t\r", words);
    struct mrd_key_file_key *key = &file->key[file->num];

    if (file->num == MRD_KEY_FILE_KEYS_MAX)
        return INVALID("%s, line %u: more than %d keys", path, line, MRD_KEY_FILE_KEYS_MAX);
    if (!id || !text || !parse_id(id, &key->id) || !parse_key(text, key->key))
        return INVALID("%s, line %u: expected \"key ID BASE64\", an id up to %d and 32 bytes", path,
                       line, MRD_SEAL_KEY_ID_MAX);
    if (file->num && key->id == file->key[0].id)
        return INVALID("%s, line %u: key %u is there twice", path, line, key->id);
    file->num++;
    return 0;
}

static int take_line(const char *path, unsigned line, char *text, struct mrd_key_file *file)
{
    char *words, *word = strtok_r(text, " \t\r", &words), *more;
    int error = 0;

    if (!word || *word == '#')
        return 0;
    if (!strcmp(word, "key")) {
        error = take_key(path, line, &words, file);
    } else if (!strcmp(word, "cipher")) {
        word = strtok_r(NULL, " \t\r", &words);
        if (!word || !mrd_crypto_parse(word, &file->cipher))
            return INVALID("%s, line %u: expected \"cipher\" and aes-128-gcm, aes-256-gcm or "
                           "chacha20-poly1305",
                           path, line);
    } else {
        return INVALID("%s, line %u: expected \"key\" or \"cipher\"", path, line);
    }
    more = error ? NULL : strtok_r(NULL, " \t\r", &words);
    if (more && *more != '#')
        return INVALID("%s, line %u: too many words", path, line);
    return error;
}

int mrd_key_file_parse(const char *path, char *text, struct mrd_key_file *file)
{
    unsigned line = 0;
    int error = 0;

    *file = (struct mrd_key_file){.cipher = MRD_CIPHER_AES_128_GCM};
    while (text && !error) {
        char *end = strchr(text, '\n');

        if (end)
            *end = 0;
        error = take_line(path, ++line, text, file);
        text = end ? end + 1 : NULL;
    }
    if (!error && !file->num)
        error = INVALID("%s: it has no key", path);
    if (error)
        mrd_wipe(file, sizeof(*file));
    return error;
}

/* Who could read it has the keys. */
static int check_owner(const char *path, int fd)
{
    struct stat s;

    if (fstat(fd, &s)) {
        mrd_error_set("%s: %s", path, strerror(errno));
        return -errno;
    }
    if (!S_ISREG(s.st_mode))
        return INVALID("%s: not a regular file", path);
    if (s.st_mode & (S_IRWXG | S_IRWXO) || (s.st_uid != geteuid() && s.st_uid != 0)) {
        mrd_error_set("%s: others may read or write it (mode %03o, owner %u): chmod 600", path,
                      (unsigned)s.st_mode & 0777u, (unsigned)s.st_uid);
        return -EPERM;
    }
    return 0;
}

int mrd_key_file_read(const char *path, struct mrd_key_file *file)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), error;
    char text[TEXT_MAX];
    size_t len = 0;
    ssize_t n = 1;

    *file = (struct mrd_key_file){0};
    if (fd < 0) {
        mrd_error_set("%s: %s", path, strerror(errno));
        return -errno;
    }
    error = check_owner(path, fd);
    while (!error && len < sizeof(text) && n) {
        n = read(fd, text + len, sizeof(text) - len);
        if (n > 0)
            len += (size_t)n;
        else if (n < 0 && errno != EINTR) {
            error = -errno;
            mrd_error_set("%s: %s", path, strerror(errno));
        }
    }
    close(fd);
    if (!error && (len == sizeof(text) || memchr(text, 0, len)))
        error = INVALID("%s: more than %d bytes, or no text", path, TEXT_MAX - 1);
    if (!error) {
        text[len] = 0;
        error = mrd_key_file_parse(path, text, file);
    }
    mrd_wipe(text, sizeof(text));
    return error;
}
