/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/rng.h"
#include "tests/kit/kit.h"
#include "transport/key_file.h"

enum { TEXT_MAX = 4096 }; /* of a file: less than that */

/* Bytes 0 to 31, and 224 to 255. */
#define LOW  "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define HIGH "4OHi4+Tl5ufo6err7O3u7/Dx8vP09fb3+Pn6+/z9/v8="

static void fill(struct mrd_key_file *file)
{
    memset(file, 0xa5, sizeof(*file));
}

static void assert_zero(const struct mrd_key_file *file)
{
    static const struct mrd_key_file zero;

    assert_memory_equal(file, &zero, sizeof(zero));
}

static int parse(const char *text, struct mrd_key_file *file)
{
    char copy[TEXT_MAX];

    assert_true(snprintf(copy, sizeof(copy), "%s", text) < TEXT_MAX);
    fill(file);
    return mrd_key_file_parse("some/keys", copy, file);
}

static void assert_key(const struct mrd_key_file *file, unsigned i, uint32_t id, unsigned first)
{
    assert_int_equal(file->key[i].id, id);
    for (unsigned k = 0; k < MRD_SEAL_KEY_BYTES; k++)
        assert_int_equal(file->key[i].key[k], first + k);
}

TEST(mrd_key_file_parse__good)
{
    static const struct {
        const char *text;
        enum mrd_cipher_id cipher;
        unsigned num;
        uint32_t low_id, high_id; /* in this order */
    } rows[] = {
        {"key 1 " LOW "\n", MRD_CIPHER_AES_128_GCM, 1, 1, 0},
        {"key 1 " LOW, MRD_CIPHER_AES_128_GCM, 1, 1, 0}, /* no newline at its end */
        {"key 1 " LOW "\r\n", MRD_CIPHER_AES_128_GCM, 1, 1, 0},
        {"key 0 " LOW "\n", MRD_CIPHER_AES_128_GCM, 1, 0, 0},
        {"key 16777215 " LOW "\n", MRD_CIPHER_AES_128_GCM, 1, 16777215, 0},
        {"key 1 " LOW "\nkey 2 " HIGH "\n", MRD_CIPHER_AES_128_GCM, 2, 1, 2},
        {"key 2 " LOW "\nkey 1 " HIGH "\n", MRD_CIPHER_AES_128_GCM, 2, 2, 1},
        {"key 0 " LOW "\nkey 1 " HIGH "\n", MRD_CIPHER_AES_128_GCM, 2, 0, 1},
        {"# of the lab\n\n \t\n  # one more\nkey 3 " LOW "\n\n", MRD_CIPHER_AES_128_GCM, 1, 3, 0},
        {"#\r\n\r\n \r\nkey 3 " LOW "\r\n\r\n", MRD_CIPHER_AES_128_GCM, 1, 3, 0},
        {" \tkey \t 4\t" LOW " \t# comment\n", MRD_CIPHER_AES_128_GCM, 1, 4, 0},
        {"key 4 " LOW " #\nkey 5 " HIGH " #comment", MRD_CIPHER_AES_128_GCM, 2, 4, 5},
        {"cipher aes-128-gcm\nkey 1 " LOW "\n", MRD_CIPHER_AES_128_GCM, 1, 1, 0},
        {"key 1 " LOW "\ncipher aes-256-gcm\n", MRD_CIPHER_AES_256_GCM, 1, 1, 0},
        {"key 1 " LOW "\ncipher aes-256-gcm\nkey 9 " HIGH, MRD_CIPHER_AES_256_GCM, 2, 1, 9},
        {"cipher\tchacha20-poly1305 # no AES\r\nkey 1 " LOW "\r\n", MRD_CIPHER_CHACHA20_POLY1305, 1,
         1, 0},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mrd_key_file file;

        assert_int_equal(parse(rows[i].text, &file), 0);
        assert_int_equal(file.cipher, rows[i].cipher);
        assert_int_equal(file.num, rows[i].num);
        assert_key(&file, 0, rows[i].low_id, 0);
        if (rows[i].num > 1)
            assert_key(&file, 1, rows[i].high_id, 224);
    }
}

/* Base64 of RFC 4648. */
static void encode(const uint8_t *key, char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (unsigned i = 0; i < MRD_KEY_TEXT_BYTES - 2; i++) {
        unsigned value = 0;

        for (unsigned bit = 6 * i; bit < 6 * i + 6; bit++) {
            value <<= 1;
            if (bit < 8 * MRD_SEAL_KEY_BYTES)
                value |= key[bit / 8] >> (7 - bit % 8) & 1;
        }
        text[i] = digits[value];
    }
    strcpy(text + MRD_KEY_TEXT_BYTES - 2, "=");
}

TEST(mrd_key_file_parse__any_key)
{
    struct mrd_rng rng;

    mrd_rng_init(&rng, 1);
    for (unsigned i = 0; i < 1000; i++) {
        uint8_t key[MRD_SEAL_KEY_BYTES];
        char digits[MRD_KEY_TEXT_BYTES], text[100];
        struct mrd_key_file file;

        for (unsigned k = 0; k < sizeof(key); k++)
            key[k] = (uint8_t)mrd_rng_u64(&rng);
        encode(key, digits);
        snprintf(text, sizeof(text), "key %u %s\n", i, digits);
        assert_int_equal(parse(text, &file), 0);
        assert_int_equal(file.key[0].id, i);
        assert_memory_equal(file.key[0].key, key, sizeof(key));
    }
}

/* What is wrong is said with the file and the line, and nothing is left of the keys before it. */
static void check_bad(const char *text, unsigned line, const char *says)
{
    char begins[64];
    struct mrd_key_file file;

    assert_int_equal(parse(text, &file), -EINVAL);
    assert_zero(&file);
    if (line)
        snprintf(begins, sizeof(begins), "some/keys, line %u: ", line);
    else
        snprintf(begins, sizeof(begins), "some/keys: ");
    if (strncmp(mrd_last_error(), begins, strlen(begins)) || !strstr(mrd_last_error(), says))
        fail_msg("\"%s\": expected \"%s\" and \"%s\": %s", text, begins, says, mrd_last_error());
}

TEST(mrd_key_file_parse__bad_lines)
{
    static const struct {
        const char *text;
        unsigned line; /* 0: none is wrong */
        const char *says;
    } rows[] = {
        {"", 0, "no key"},
        {"\n", 0, "no key"},
        {"# key 1 " LOW "\n", 0, "no key"},
        {"cipher aes-128-gcm\n", 0, "no key"},
        {"key 1 " LOW "\nkey 2 " HIGH "\nkey 3 " LOW "\n", 3, "more than 2"},
        {"key 1 " LOW "\nkey 2 " HIGH "\n\nkey 1 " LOW "\n", 4, "more than 2"},
        {"key 1 " LOW "\n#\nkey 1 " HIGH "\n", 3, "key 1 is there twice"},
        {"key 0 " LOW "\nkey 0 " LOW, 2, "key 0 is there twice"},
        {"key 7 " LOW "\r\nkey 007 " HIGH "\r\n", 2, "key 7 is there twice"},
        {"key 1 " LOW " " HIGH "\n", 1, "too many words"},
        {"key 1 " LOW " comment\n", 1, "too many words"},
        {"key 1 " LOW "\ncipher aes-128-gcm aes-256-gcm\n", 2, "too many words"},
        {"cipher aes-128-gcm key 1 " LOW "\n", 1, "too many words"},
        {"\n\ncipher\nkey 1 " LOW "\n", 3, "chacha20-poly1305"},
        {"cipher #aes-128-gcm\nkey 1 " LOW "\n", 1, "aes-128-gcm"},
        {"key 1 " LOW "\r\ncipher aes-192-gcm\r\n", 2, "aes-256-gcm"},
        {"cipher AES-128-GCM\nkey 1 " LOW "\n", 1, "aes-128-gcm"},
        {"keys 1 " LOW "\n", 1, "\"key\" or \"cipher\""},
        {"Key 1 " LOW "\n", 1, "\"key\" or \"cipher\""},
        {"key 1 " LOW "\n" HIGH "\n", 2, "\"key\" or \"cipher\""},
        {"\xef\xbb\xbfkey 1 " LOW "\n", 1, "\"key\" or \"cipher\""},
        {"key 1 " LOW "\nkey 2 " HIGH "\n;\n", 3, "\"key\" or \"cipher\""},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_bad(rows[i].text, rows[i].line, rows[i].says);
}

/* "key", and then what is no id and 32 bytes. */
TEST(mrd_key_file_parse__bad_keys)
{
    static const char *const rows[] = {
        "",
        "1",
        "1 #" LOW,
        LOW,
        LOW " 1",
        "# 1 " LOW,
        "16777216 " LOW,
        "4294967297 " LOW, /* 1, where only 32 bits count */
        "18446744073709551617 " LOW,
        "99999999999999999999999999 " LOW,
        "+1 " LOW,
        "-1 " LOW,
        "-0 " LOW,
        "0x1 " LOW,
        "1a " LOW,
        "1.0 " LOW,
        "one " LOW,
        /* 31, 33 and 24 bytes; none */
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==",
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g",
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYX",
        "1 =",
        /* no padding, and too much */
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8==",
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh==",
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8A",
        /* bits behind the last byte */
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=",
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+=",
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh/=",
        /* wrong digits: of base64url, and others */
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwd-h8=",
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwd_h8=",
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwd=h8=",
        "1 !AECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh.=",
        "1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwd\xc3\xa9"
        "8=",
        /* in hexadecimal */
        "1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
    };
    char text[200];

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(text, sizeof(text), "key %s\n", rows[i]);
        check_bad(text, 1, "key ID BASE64");
        snprintf(text, sizeof(text), "#\r\nkey 1000 " HIGH "\r\nkey %s\r\n", rows[i]);
        check_bad(text, 3, "key ID BASE64");
    }
}

/* A place of each digit takes those of base64, and no other byte. */
TEST(mrd_key_file_parse__each_byte_as_a_digit)
{
    for (unsigned place = 0; place < 4; place++) {
        unsigned taken = 0;

        for (int c = 1; c < 256; c++) {
            char text[] = "key 1 " LOW "\n";
            struct mrd_key_file file;

            text[strlen("key 1 ") + 8 + place] = (char)c;
            taken += !parse(text, &file);
        }
        assert_int_equal(taken, 64);
    }
}

FIXTURE(folder)
{
    char folder[64], path[128]; /* of a file in it */
    struct mrd_key_file file;
};

FIXTURE_SETUP(folder)
{
    strcpy(self->folder, "/tmp/mrd_keys.XXXXXX");
    assert_non_null(mkdtemp(self->folder));
    snprintf(self->path, sizeof(self->path), "%s/keys", self->folder);
    fill(&self->file);
}

FIXTURE_TEARDOWN(folder)
{
    remove(self->path);
    rmdir(self->folder);
}

static void write_file(const struct folder *f, const void *text, size_t len)
{
    int fd = open(f->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    assert_int_equal(close(fd), 0);
}

static int read_file(struct folder *f)
{
    fill(&f->file);
    return mrd_key_file_read(f->path, &f->file);
}

/* It is refused with a sentence that names the file and says that, and no key is left. */
static void check_refused(struct folder *f, int error, const char *says)
{
    assert_int_equal(read_file(f), error);
    assert_zero(&f->file);
    if (!strstr(mrd_last_error(), f->path) || !strstr(mrd_last_error(), says))
        fail_msg("expected the path and \"%s\": %s", says, mrd_last_error());
}

TEST_F(folder, mrd_key_file_read__permissions)
{
    static const char text[] = "key 5 " LOW "\n";
    static const mode_t modes[] = {0640, 0620, 0610, 0604, 0602, 0601, 0440, 0644, 0666, 0777};

    write_file(self, text, strlen(text));
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(chmod(self->path, i ? 0400 : 0600), 0);
        assert_int_equal(read_file(self), 0);
        assert_int_equal(self->file.num, 1);
        assert_key(&self->file, 0, 5, 0);
    }
    for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        assert_int_equal(chmod(self->path, modes[i]), 0);
        check_refused(self, -EPERM, "chmod");
    }
}

/* A file of somebody else's, who may read it. */
TEST_F(folder, mrd_key_file_read__owner)
{
    static const char text[] = "key 5 " LOW "\n";

    if (geteuid())
        skip(); /* only root gives files away */
    write_file(self, text, strlen(text));
    assert_int_equal(chown(self->path, 1, (gid_t)-1), 0);
    check_refused(self, -EPERM, "owner 1");
}

TEST_F(folder, mrd_key_file_read__no_file)
{
    check_refused(self, -ENOENT, strerror(ENOENT));
}

TEST_F(folder, mrd_key_file_read__directory)
{
    assert_int_equal(mkdir(self->path, 0700), 0);
    check_refused(self, -EINVAL, "not a regular file");
    assert_int_equal(rmdir(self->path), 0);
}

/* Nobody writes to it: that is no reason to wait. */
TEST_F(folder, mrd_key_file_read__fifo)
{
    assert_int_equal(mkfifo(self->path, 0600), 0);
    alarm(20); /* ends the program */
    check_refused(self, -EINVAL, "not a regular file");
    alarm(0);
}

/* What is wrong in a file is said with its line. */
TEST_F(folder, mrd_key_file_read__bad_line)
{
    static const char text[] = "key 5 " LOW "\nkey 6 " LOW "a\n";

    write_file(self, text, strlen(text));
    check_refused(self, -EINVAL, ", line 2: ");
    write_file(self, "", 0);
    check_refused(self, -EINVAL, "no key");
}

/* A NUL hides what is behind it: also where all before it is right. */
TEST_F(folder, mrd_key_file_read__nul)
{
    static const char text[] = "key 5 " LOW "\n\0\nkey 6 " HIGH "\n";

    write_file(self, text, sizeof(text) - 1);
    check_refused(self, -EINVAL, "no text");
    write_file(self, text, strlen(text) + 1);
    check_refused(self, -EINVAL, "no text");
    write_file(self, text, strlen(text));
    assert_int_equal(read_file(self), 0);
}

/* The last key is read in full where the file is as long as is allowed, and a byte more is too long. */
TEST_F(folder, mrd_key_file_read__longest)
{
    static const char key[] = "\nkey 5 " LOW;
    char text[2 * TEXT_MAX];

    memset(text, '#', sizeof(text));
    memcpy(text + TEXT_MAX - 1 - strlen(key), key, strlen(key));
    write_file(self, text, TEXT_MAX - 1);
    assert_int_equal(read_file(self), 0);
    assert_int_equal(self->file.num, 1);
    assert_key(&self->file, 0, 5, 0);
    text[TEXT_MAX - 1] = '\n';
    for (size_t len = TEXT_MAX; len <= sizeof(text); len += TEXT_MAX / 2 - 1) {
        write_file(self, text, len);
        check_refused(self, -EINVAL, "more than 4095 bytes");
    }
}
