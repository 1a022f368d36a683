/* SPDX-License-Identifier: BSD-2-Clause */
/* The network between the two contexts, its packets, and numbers of which only the order matters. */
#include "tests/model/identity.h"

#include <string.h>

const char *identity_text_of(const struct packet *p)
{
    static char text[120];
    char from = "AB"[p->from], to = "BA"[p->from], dst[4] = "?";
    const char *contact = p->first_contact ? ", first contact" : "";
    const char *cookie = p->cookie_age > COOKIE_LIFE ? ", old cookie" : p->cookie ? ", cookie" : "";
    const char *forgotten = p->forgotten ? ", forgotten" : "";

    if (p->dst)
        snprintf(dst, sizeof(dst), "%c%u", to, p->dst % 10u);
    if (p->type == DATA && p->msg)
        snprintf(text, sizeof(text), "m%u (psn %u, epoch %u%s%s%s) from %c%u to %s", p->msg - 1u,
                 p->psn, p->epoch, contact, cookie, forgotten, from, p->src, dst);
    else if (p->type == DATA)
        snprintf(text, sizeof(text), "an empty packet (epoch %u%s%s%s) from %c%u to %s", p->epoch,
                 contact, cookie, forgotten, from, p->src, dst);
    else if (p->type == ACK)
        snprintf(text, sizeof(text), "ACK of epoch %u (psns %#x, live epoch %u) from %c%u to %s",
                 p->epoch, p->bits, p->live, from, p->src, dst);
    else if (p->type == RESET)
        snprintf(text, sizeof(text), "RESET of epoch %u (live epoch %u) from %c%u to %s", p->epoch,
                 p->live, from, p->src, dst);
    else if (p->type == BUSY)
        snprintf(text, sizeof(text), "BUSY of epoch %u from %c%u to %s", p->epoch, from, p->src,
                 dst);
    else
        snprintf(text, sizeof(text), "CHALLENGE of epoch %u from %c%u to %s", p->epoch, from,
                 p->src, dst);
    return text;
}

/* Packets are kept sorted; the same packet again is the younger one. */
bool identity_put(const struct rules *r, struct state *s, struct packet p)
{
    unsigned n = 0, at;

    for (unsigned i = 0; i < NET_MAX && s->net[i].type; i++, n++) {
        struct packet same = s->net[i];

        same.age = p.age;
        if (!memcmp(&same, &p, sizeof(p))) {
            s->net[i].age = 0;
            return true;
        }
    }
    if (n == r->net) {
        s->no_room = 1;
        return false;
    }
    for (at = n; at && memcmp(&s->net[at - 1], &p, sizeof(p)) > 0; at--)
        s->net[at] = s->net[at - 1];
    s->net[at] = p;
    return true;
}

void identity_lose(struct state *s, unsigned i)
{
    memmove(&s->net[i], &s->net[i + 1], (NET_MAX - 1 - i) * sizeof(s->net[0]));
    memset(&s->net[NET_MAX - 1], 0, sizeof(s->net[0]));
}

static void sort_net(struct state *s)
{
    for (unsigned i = 1; i < NET_MAX && s->net[i].type; i++)
        for (unsigned k = i; k && memcmp(&s->net[k - 1], &s->net[k], sizeof(s->net[k])) > 0; k--) {
            struct packet swap = s->net[k];

            s->net[k] = s->net[k - 1];
            s->net[k - 1] = swap;
        }
}

enum { MENTIONS_MAX = 2 * PACKETS + 3 };

/* All mentions of epochs of one life. */
static unsigned epochs_of(struct state *s, unsigned x, unsigned inc, uint8_t **value)
{
    struct node *n = &s->node[x], *peer = &s->node[!x];
    unsigned num = 0;

    if (n->inc == inc && n->up) {
        value[num++] = &n->epoch_next;
        if (n->tx)
            value[num++] = &n->epoch;
    }
    if (peer->rx && peer->rx_inc == inc)
        value[num++] = &peer->rx_epoch;
    for (struct packet *p = s->net; p < s->net + PACKETS; p++) {
        bool its = p->from == x && p->src == inc;

        if (!p->type)
            continue;
        if (its ? p->type == DATA : p->from != x && p->type != DATA && p->dst == inc)
            value[num++] = &p->epoch;
        if (its && p->live && p->live != LIVE_NONE)
            value[num++] = &p->live;
    }
    return num;
}

/* All mentions of its clock. */
static unsigned stamps_of(struct state *s, unsigned x, unsigned inc, uint8_t **value)
{
    struct node *n = &s->node[x], *peer = &s->node[!x];
    unsigned num = 0;

    if (n->inc == inc && n->up)
        value[num++] = &n->clock;
    if (peer->tx && peer->acked && peer->bound == inc)
        value[num++] = &peer->told;
    for (struct packet *p = s->net; p < s->net + PACKETS; p++)
        if (p->type && p->from == x && p->src == inc &&
            (p->type == ACK || (p->type == DATA && p->forgotten)))
            value[num++] = &p->stamp;
    return num;
}

/* The lowest become 1, the next ones 2, and so on. */
static void number_anew(uint8_t **value, unsigned num)
{
    unsigned seen = 0;

    for (uint8_t rank = 1; seen < num; rank++) {
        uint8_t lowest = UINT8_MAX;

        for (unsigned i = seen; i < num; i++)
            if (*value[i] < lowest)
                lowest = *value[i];
        for (unsigned i = seen; i < num; i++)
            if (*value[i] == lowest) {
                uint8_t *swap = value[i];

                *swap = rank;
                value[i] = value[seen];
                value[seen++] = swap;
            }
    }
}

struct state *identity_tidy(struct state *s)
{
    uint8_t *value[MENTIONS_MAX];

    for (unsigned x = 0; x < 2; x++)
        for (unsigned inc = 1; inc <= s->node[x].inc; inc++) {
            number_anew(value, epochs_of(s, x, inc, value));
            number_anew(value, stamps_of(s, x, inc, value));
        }
    sort_net(s);
    return s;
}
