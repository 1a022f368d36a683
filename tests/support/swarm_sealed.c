/* SPDX-License-Identifier: BSD-2-Clause */
/* Swarms whose packets are sealed: the judge has the key, opens each packet, and looks at its number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/wire.h"
#include "tests/support/swarm.h"
#include "transport/crypto.h"
#include "transport/memory.h"

enum { NUMBER_AT = 8, FROM_AT = 16, TO_AT = 24 };

static void *alloc(void *arg, size_t bytes)
{
    (void)arg;
    return calloc(1, bytes);
}

static void release(void *arg, void *memory, size_t bytes)
{
    (void)arg, (void)bytes;
    free(memory);
}

void swarm_seal_begin(struct swarm *s)
{
    static const struct mrd_allocator heap = {.alloc = alloc, .free = release};
    static const uint8_t key[MRD_SEAL_KEY_BYTES];
    struct swarm_sealed *w = &s->sealed;
    struct mrd_seal_config config = {.life = UINT64_MAX, .max_peers = 1};
    char line[128];
    int fd;

    if (!s->config.sealed)
        return;
    snprintf(w->path, sizeof(w->path), "%s/mrd-swarm-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    fd = mkstemp(w->path); /* mode 600 */
    assert_true(fd >= 0);
    snprintf(line, sizeof(line), "key 1 %s\n", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    assert_int_equal(write(fd, line, strlen(line)), (ssize_t)strlen(line));
    close(fd);
    w->cipher = mrd_crypto_openssl(MRD_CIPHER_AES_128_GCM);
    assert_non_null(w->cipher);
    config.cipher = w->cipher;
    w->seal = mrd_seal_create(&config, &heap);
    assert_non_null(w->seal);
    assert_true(mrd_seal_add_key(w->seal, 1, key, false));
}

void swarm_seal_end(struct swarm *s)
{
    struct swarm_sealed *w = &s->sealed;

    if (!w->seal)
        return;
    mrd_seal_destroy(w->seal);
    mrd_crypto_openssl_close(w->cipher);
    unlink(w->path);
}

const char *swarm_key_file(const struct swarm *s)
{
    return s->config.sealed ? s->sealed.path : NULL;
}

/* Numbers of a life only grow, so that none is used twice: those to anybody are counted apart. */
static void judge_number(struct swarm *s, const struct mrd_sim_datagram *d)
{
    uint64_t from = mrd_wire_get_u64(d->data + FROM_AT),
             number = mrd_wire_get_u64(d->data + NUMBER_AT);
    bool asks = !mrd_wire_get_u64(d->data + TO_AT);
    struct swarm_numbers *n = &s->sealed.numbers[d->from];

    if (n->life != from) {
        for (uint32_t i = 0; i < SWARM_HOSTS_MAX; i++)
            swarm_check(s, s->sealed.numbers[i].life != from, "host %u has the life of host %u",
                        d->from, i);
        *n = (struct swarm_numbers){.life = from};
    }
    swarm_check(s, number >= n->next[asks], "host %u seals with number %llu again", d->from,
                (unsigned long long)number);
    n->next[asks] = number + 1;
}

struct mrd_sim_datagram swarm_opened(struct swarm *s, const struct mrd_sim_datagram *d)
{
    struct swarm_sealed *w = &s->sealed;
    struct mrd_sim_datagram inner = *d;
    struct mrd_rx_packet packet = {.data = w->opened, .len = d->len};
    struct mrd_seal_claim claim;

    if (!s->config.sealed)
        return inner;
    assert_true(d->len <= sizeof(w->opened));
    memcpy(w->opened, d->data, d->len);
    w->now_ns += MRD_SEC; /* it is not sparing with keys */
    swarm_check(s, mrd_seal_open(w->seal, &packet, w->now_ns, &claim) == MRD_SEAL_OPENED,
                "host %u sends a packet that does not open", d->from);
    judge_number(s, d);
    inner.data = w->opened + (packet.data - w->opened);
    inner.len = packet.len;
    return inner;
}
