/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/sealing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/hash.h"
#include "core/rng.h"
#include "transport/crypto.h"
#include "transport/error.h"
#include "transport/key_file.h"

/* ---------------------------------------------------------------------------------------- memory */

static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

/* Not in core dumps, and not in children, which would seal by the same numbers. */
static void *alloc(void *arg, size_t bytes)
{
    size_t whole = whole_pages(bytes);
    void *memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)arg;
    if (memory == MAP_FAILED)
        return NULL;
    (void)madvise(memory, whole, MADV_DONTDUMP);
    (void)madvise(memory, whole, MADV_WIPEONFORK);
    return memory;
}

static void release(void *arg, void *memory, size_t bytes)
{
    (void)arg;
    munmap(memory, whole_pages(bytes));
}

static const struct mrd_allocator memory = {.alloc = alloc, .free = release};

/* ------------------------------------------------------------------------------------------ keys */

static bool has_id(const struct mrd_key_file *file, uint32_t id)
{
    for (unsigned i = 0; i < file->num; i++)
        if (file->key[i].id == id)
            return true;
    return false;
}

/* The file's keys are the ones to have; others that were in it before go. */
static int take_keys(struct mrd_context_impl *c, const struct mrd_key_file *file)
{
    struct mrd_sealing *s = &c->sealing;

    for (unsigned i = file->num; i--;) /* the first last: it is the one to send with */
        if (!mrd_seal_add_key(s->seal, file->key[i].id, file->key[i].key, true)) {
            mrd_error_set("no memory for key %u", file->key[i].id);
            return -ENOMEM;
        }
    for (unsigned i = 0; i < s->num_keys; i++)
        if (!has_id(file, s->key_id[i]))
            mrd_seal_remove_key(s->seal, s->key_id[i]);
    s->num_keys = file->num;
    for (unsigned i = 0; i < file->num; i++)
        s->key_id[i] = file->key[i].id;
    return 0;
}

int mrd_sealing_reload(struct mrd_context_impl *c)
{
    struct mrd_sealing *s = &c->sealing;
    struct mrd_key_file file;
    int error;

    if (!s->seal) {
        mrd_error_set("the context has no key file");
        return -EINVAL;
    }
    error = mrd_key_file_read(s->path, &file);
    if (error)
        return error;
    if (file.cipher != s->cipher->id) {
        mrd_error_set("%s: another cipher: contexts must be opened again for that", s->path);
        error = -EINVAL;
    } else {
        error = take_keys(c, &file);
        memset(s->unopened, 0, sizeof(s->unopened)); /* what was refused may be accepted now */
    }
    mrd_wipe(&file, sizeof(file));
    return error;
}

/* ----------------------------------------------------------------------------------- open, close */

/* The name of this life. In virtual time it follows from the seed, and the time of opening. */
static int choose_life(const struct mrd_context_impl *c, uint64_t seed, uint64_t *life)
{
    struct mrd_rng rng;

    mrd_rng_init(&rng, seed ^ mrd_hash_mix(mrd_context_now(c)));
    *life = mrd_rng_u64(&rng);
    if (c->backend->threaded && getrandom(life, sizeof(*life), 0) != sizeof(*life)) {
        mrd_error_set("no randomness from the system: %s", strerror(errno));
        return -errno;
    }
    *life |= !*life;
    return 0;
}

static int open_by(struct mrd_context_impl *c, const struct mrd_context_attr *attr, uint64_t seed,
                   const struct mrd_key_file *file)
{
    struct mrd_sealing *s = &c->sealing;
    struct mrd_seal_config config = {.max_peers = attr->max_peers};
    int error = choose_life(c, seed, &config.life);

    struct mrd_addr self;

    if (!error)
        error = c->ops->self_address(c->backend, &self);
    if (error)
        return error;
    config.reply = self.port;
    s->path = strdup(attr->key_file);
    s->cipher = s->path ? mrd_crypto_open(file->cipher, &error) : NULL;
    if (!s->cipher)
        return error ? error : -ENOMEM;
    config.cipher = s->cipher;
    s->seal = mrd_seal_create(&config, &memory);
    if (!s->seal) {
        mrd_error_set("no memory for keys of %u peers", attr->max_peers);
        return -ENOMEM;
    }
    mrd_log(MRD_LOG_INFO, "packets are sealed: %s", s->cipher->name);
    return take_keys(c, file);
}

int mrd_sealing_open(struct mrd_context_impl *c, const struct mrd_context_attr *attr, uint64_t seed)
{
    struct mrd_key_file file;
    int error;

    if (!attr->key_file || !attr->key_file[0])
        return 0;
    error = mrd_key_file_read(attr->key_file, &file);
    if (error)
        return error;
    error = open_by(c, attr, seed, &file);
    mrd_wipe(&file, sizeof(file));
    return error;
}

void mrd_sealing_close(struct mrd_context_impl *c)
{
    struct mrd_sealing *s = &c->sealing;

    if (s->seal)
        mrd_seal_destroy(s->seal);
    if (s->cipher)
        mrd_crypto_close(s->cipher);
    free(s->path);
    *s = (struct mrd_sealing){0};
}

/* --------------------------------------------------------------------------------------- packets */

static bool is_same(const struct mrd_addr *a, const struct mrd_addr *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* Only packets that their sender could mean to be answered have an address; anybody may forge them. */
static void note_unopened(struct mrd_sealing *s, const struct mrd_rx_packet *packet,
                          enum mrd_seal_verdict verdict, const struct mrd_seal_claim *claim)
{
    struct mrd_unopened *row = NULL;
    struct mrd_addr addr = packet->from;

    if (verdict == MRD_SEAL_REPLAY || verdict == MRD_SEAL_BUSY)
        return;
    addr.port = claim->reply;
    for (unsigned i = 0; i < MRD_UNOPENED_MAX && !row; i++)
        if (is_same(&s->unopened[i].addr, &addr))
            row = &s->unopened[i];
    if (!row)
        row = &s->unopened[s->next_unopened++ % MRD_UNOPENED_MAX];
    *row = (struct mrd_unopened){addr, verdict, claim->key_id};
}

unsigned mrd_sealing_open_packets(struct mrd_context_impl *c, struct mrd_rx_packet *packets,
                                  unsigned n, uint64_t now_ns)
{
    struct mrd_sealing *s = &c->sealing;
    struct mrd_seal_claim claim;
    unsigned kept = 0;

    for (unsigned i = 0; i < n; i++) {
        enum mrd_seal_verdict verdict = mrd_seal_open(s->seal, &packets[i], now_ns, &claim);

        if (verdict) {
            note_unopened(s, &packets[i], verdict, &claim);
            continue;
        }
        if (c->ops->learn)
            c->ops->learn(c->backend, &packets[i]);
        if (kept != i)
            packets[kept] = packets[i];
        kept++;
    }
    return kept;
}

/* ---------------------------------------------------------------------------------------- reasons */

const char *mrd_sealing_doubt(const struct mrd_context_impl *c, const struct mrd_addr *addr,
                              char *text, size_t len)
{
    const struct mrd_sealing *s = &c->sealing;

    for (unsigned i = 0; s->seal && i < MRD_UNOPENED_MAX; i++) {
        const struct mrd_unopened *row = &s->unopened[i];

        if (row->verdict == MRD_SEAL_OPENED || !is_same(&row->addr, addr))
            continue;
        if (row->verdict == MRD_SEAL_CLEAR)
            snprintf(text, len, "it is not sealed");
        else if (row->verdict == MRD_SEAL_NO_KEY)
            snprintf(text, len, "it has another key: key %u is not in %s", row->key_id, s->path);
        else
            snprintf(text, len, "its key %u is not that of %s, or another cipher", row->key_id,
                     s->path);
        return text;
    }
    return NULL;
}

void mrd_sealing_log_silence(struct mrd_context_impl *c, const struct mrd_addr *addr)
{
    char address[MRD_ADDRESS_MAX], text[MRD_SEALING_DOUBT_BYTES];
    const char *doubt = mrd_sealing_doubt(c, addr, text, sizeof(text));

    if (!c->ops->format_address(c->backend, addr, address, sizeof(address)))
        mrd_log(doubt ? MRD_LOG_WARN : MRD_LOG_INFO, "no answer from %s: %s", address,
                doubt ? doubt : "nobody is there, or nobody with this key");
}
