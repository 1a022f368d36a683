/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/sent.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/seq.h"

static struct mrd_sent_page **page_of(const struct mrd_sents *s, uint32_t psn)
{
    return &s->page[psn / MRD_SENT_PAGE & (s->ring - 1)];
}

/*
 * Releases a page without records, except the page of the next PSN: a slow sender would release and
 * take it again for each packet.
 */
static void page_drop(struct mrd_sents *s, uint32_t psn)
{
    struct mrd_sent_page **page = page_of(s, psn);

    if (*page && !(*page)->used && (*page)->number != s->next / MRD_SENT_PAGE) {
        if (s->spare == *page)
            s->spare = NULL;
        mrd_pool_release(s->pages, *page);
        *page = NULL;
        s->num_pages--;
    }
}

static struct mrd_sent *slot(const struct mrd_sents *s, uint32_t psn)
{
    struct mrd_sent_page *page = *page_of(s, psn);

    return page ? &page->rec[psn % MRD_SENT_PAGE] : NULL;
}

void mrd_sent_init(struct mrd_sents *s, struct mrd_pool *pages, uint32_t tracker, uint32_t peers)
{
    memset(s, 0, sizeof(*s));
    s->pages = pages;
    s->keep_free = 2 * peers;
    s->tracker = tracker;
    s->page = s->few;
    s->ring = MRD_SENT_FEW;
}

static void ring_free(const struct mrd_sents *s, struct mrd_sent_page **ring, uint32_t length)
{
    if (ring != s->few)
        mrd_free(s->pages->allocator, ring, length * sizeof(*ring));
}

void mrd_sent_fini(struct mrd_sents *s)
{
    for (uint32_t i = 0; i < s->ring; i++)
        if (s->page[i])
            mrd_pool_release(s->pages, s->page[i]);
    ring_free(s, s->page, s->ring);
    memset(s->few, 0, sizeof(s->few));
    s->page = s->few;
    s->ring = MRD_SENT_FEW;
    s->num_pages = 0;
    s->spare = NULL;
}

/* Makes the ring twice as long. Returns false if there is no memory. */
static bool ring_grow(struct mrd_sents *s)
{
    uint32_t length = 2 * s->ring;
    struct mrd_sent_page **ring = mrd_alloc(s->pages->allocator, length * sizeof(*ring));

    if (!ring)
        return false;
    for (uint32_t i = 0; i < s->ring; i++)
        if (s->page[i])
            ring[s->page[i]->number & (length - 1)] = s->page[i];
    ring_free(s, s->page, s->ring);
    s->page = ring;
    s->ring = length;
    return true;
}

/*
 * Returns the place of the next PSN's page; NULL: no memory. The first and the last page of a full
 * tracker may lie a tracker apart: the ring may be longer than it by one doubling.
 */
static struct mrd_sent_page **place_of_next(struct mrd_sents *s)
{
    for (;;) {
        struct mrd_sent_page **page = page_of(s, s->next);

        if (!*page || (*page)->number == s->next / MRD_SENT_PAGE)
            return page;
        if (s->ring * MRD_SENT_PAGE > s->tracker || !ring_grow(s))
            return NULL;
    }
}

/*
 * Each peer may have one page whatever the others have. Else peers that cannot be reached, which
 * hold pages until they are given up, would leave none for data to those that can.
 */
static bool has_share(const struct mrd_sents *s)
{
    uint32_t free = mrd_pool_free(s->pages);

    if (s->num_pages == (s->spare ? 1 : 0))
        return true;
    return free > s->keep_free && s->num_pages < free - s->keep_free;
}

/*
 * Refusals must get through when the pages are used up: the records that hold them may wait for
 * refusals. So each peer may take one spare page beyond its share. It is for packets that the peer
 * never refuses: they depend on nothing else.
 */
static bool may_use_spare(enum mrd_sent_kind kind)
{
    return kind == MRD_SENT_REFUSAL || kind == MRD_SENT_READY || kind == MRD_SENT_CLOSE;
}

/* Returns the page of the next PSN, if needed from the pool; NULL: none for that kind of packet. */
static struct mrd_sent_page *take_page(struct mrd_sents *s, enum mrd_sent_kind kind)
{
    struct mrd_sent_page **page = place_of_next(s);

    if (!page)
        return NULL;
    if (*page && (*page != s->spare || may_use_spare(kind)))
        return *page;
    if (*page && has_share(s)) { /* within our share again: no longer spare */
        s->spare = NULL;
        return *page;
    }
    if (*page || (!has_share(s) && (!may_use_spare(kind) || s->spare)))
        return NULL;
    if (!has_share(s))
        *page = s->spare = mrd_pool_alloc(s->pages);
    else
        *page = mrd_pool_alloc(s->pages);
    if (*page) {
        memset(*page, 0, sizeof(**page));
        (*page)->number = s->next / MRD_SENT_PAGE;
        s->num_pages++;
    }
    return *page;
}

struct mrd_sent *mrd_sent_add(struct mrd_sents *s, enum mrd_sent_kind kind)
{
    struct mrd_sent_page *page = take_page(s, kind);
    struct mrd_sent *rec;

    assert(s->next - s->una < s->tracker);
    if (!page)
        return NULL;
    rec = &page->rec[s->next % MRD_SENT_PAGE];
    assert(rec->state == MRD_SENT_FREE);
    page->used++;
    memset(rec, 0, sizeof(*rec));
    rec->psn = s->next++;
    rec->state = MRD_SENT_NEW;
    rec->kind = (uint8_t)kind;
    page->acked &= (uint16_t) ~(1u << rec->psn % MRD_SENT_PAGE);
    if (rec->psn % MRD_SENT_PAGE == 0)
        page_drop(s, rec->psn - 1);
    return rec;
}

struct mrd_sent *mrd_sent_get(const struct mrd_sents *s, uint32_t psn)
{
    struct mrd_sent *rec = slot(s, psn);

    return rec && rec->state != MRD_SENT_FREE && rec->psn == psn ? rec : NULL;
}

static bool is_acked(const struct mrd_sents *s, uint32_t psn)
{
    const struct mrd_sent_page *page = *page_of(s, psn);

    return !page || page->acked >> psn % MRD_SENT_PAGE & 1;
}

static void chain_append(struct mrd_sents *s, struct mrd_sent_chain *c, struct mrd_sent *rec)
{
    rec->prev = c->tail;
    if (c->num++)
        slot(s, c->tail)->next = rec->psn;
    else
        c->head = rec->psn;
    c->tail = rec->psn;
}

static void chain_remove(struct mrd_sents *s, struct mrd_sent_chain *c, struct mrd_sent *rec)
{
    if (c->head == rec->psn)
        c->head = rec->next;
    else
        slot(s, rec->prev)->next = rec->next;
    if (c->tail == rec->psn)
        c->tail = rec->prev;
    else
        slot(s, rec->next)->prev = rec->prev;
    c->num--;
}

/*
 * The same for a path's chain. Its length is the path's out_packets, in which mrd_path_sent()
 * counted this record already.
 */
static void path_append(struct mrd_sents *s, struct mrd_paths *paths, struct mrd_sent *rec)
{
    struct mrd_path *path = &paths->path[rec->path];

    rec->path_next = rec->path_prev = MRD_PSN_NONE;
    if (paths->load[rec->path].out_packets > 1) {
        rec->path_prev = path->tail;
        slot(s, path->tail)->path_next = rec->psn;
    } else {
        path->head = rec->psn;
    }
    path->tail = rec->psn;
}

static void path_remove(struct mrd_sents *s, struct mrd_path *path, struct mrd_sent *rec)
{
    if (path->head == rec->psn)
        path->head = rec->path_next;
    else
        slot(s, rec->path_prev)->path_next = rec->path_next;
    if (path->tail == rec->psn)
        path->tail = rec->path_prev;
    else
        slot(s, rec->path_next)->path_prev = rec->path_prev;
}

static struct mrd_sent_chain *lost_chain(struct mrd_sents *s, const struct mrd_sent *rec)
{
    return mrd_sent_is_control(rec->kind) ? &s->lost_control : &s->lost;
}

static void leave_state(struct mrd_sents *s, struct mrd_sent *rec, struct mrd_paths *paths)
{
    if (rec->state == MRD_SENT_INFLIGHT) {
        chain_remove(s, &s->inflight, rec);
        path_remove(s, &paths->path[rec->path], rec);
        s->inflight_bytes -= rec->bytes;
    } else if (rec->state == MRD_SENT_LOST) {
        chain_remove(s, lost_chain(s, rec), rec);
    }
}

void mrd_sent_transmit(struct mrd_sents *s, struct mrd_sent *rec, struct mrd_paths *paths,
                       uint16_t path, uint32_t pseq, uint64_t now_ns)
{
    assert(rec->state != MRD_SENT_ACKED);
    leave_state(s, rec, paths);
    rec->state = MRD_SENT_INFLIGHT;
    rec->path = path;
    rec->pseq = pseq;
    rec->tx_ns = now_ns;
    if (rec->tx_count < UINT8_MAX)
        rec->tx_count++;
    chain_append(s, &s->inflight, rec);
    path_append(s, paths, rec);
    s->inflight_bytes += rec->bytes;
}

void mrd_sent_follow(struct mrd_sents *s, struct mrd_sent *rec, struct mrd_sent *last,
                     struct mrd_paths *paths, uint32_t pseq)
{
    struct mrd_path *path = &paths->path[last->path];
    uint32_t psn = rec->psn;

    assert(last->state == MRD_SENT_INFLIGHT && last->tx_count == 1 && last->psn == psn - 1 &&
           s->inflight.tail == last->psn && path->tail == last->psn);
    *rec = *last;
    rec->psn = psn;
    rec->pseq = pseq;
    rec->prev = rec->path_prev = last->psn;
    rec->offset += last->len;
    rec->in_run = true;
    last->next = last->path_next = psn;
    s->inflight.tail = path->tail = psn;
    s->inflight.num++;
    s->inflight_bytes += rec->bytes;
}

void mrd_sent_lose(struct mrd_sents *s, struct mrd_sent *rec, struct mrd_paths *paths)
{
    assert(rec->state == MRD_SENT_INFLIGHT);
    leave_state(s, rec, paths);
    rec->state = MRD_SENT_LOST;
    chain_append(s, lost_chain(s, rec), rec);
}

void mrd_sent_ack(struct mrd_sents *s, struct mrd_sent *rec, struct mrd_paths *paths)
{
    assert(rec->state == MRD_SENT_INFLIGHT || rec->state == MRD_SENT_LOST);
    leave_state(s, rec, paths);
    rec->state = MRD_SENT_ACKED;
    (*page_of(s, rec->psn))->acked |= (uint16_t)(1u << rec->psn % MRD_SENT_PAGE);
    while (s->una != s->next && is_acked(s, s->una))
        s->una++;
}

void mrd_sent_release(struct mrd_sents *s, struct mrd_sent *rec)
{
    assert(rec->state == MRD_SENT_ACKED);
    rec->state = MRD_SENT_FREE;
    (*page_of(s, rec->psn))->used--;
    page_drop(s, rec->psn);
}

uint32_t mrd_sent_run(const struct mrd_sents *s, const struct mrd_sent *first, uint32_t end)
{
    const struct mrd_sent *rec = first;
    uint32_t n = 1;

    if (first->kind != MRD_SENT_SEGMENT || first->state != MRD_SENT_INFLIGHT ||
        first->tx_count != 1)
        return 1;
    for (; first->psn + n != end; n++) {
        const struct mrd_sent *next = slot(s, first->psn + n);

        if (!next || next->state != MRD_SENT_INFLIGHT || next->tx_count != 1 ||
            next->kind != MRD_SENT_SEGMENT || next->id != first->id || next->path != first->path ||
            next->tx_ns != first->tx_ns || !next->in_run || rec->next != next->psn ||
            rec->path_next != next->psn)
            break;
        rec = next;
    }
    return n;
}

/* Takes the records from `first` to `last` out of both chains, in which they are neighbours. */
static void unlink_run(struct mrd_sents *s, const struct mrd_sent *first,
                       const struct mrd_sent *last, uint32_t n, struct mrd_path *path)
{
    if (s->inflight.head == first->psn)
        s->inflight.head = last->next;
    else
        slot(s, first->prev)->next = last->next;
    if (s->inflight.tail == last->psn)
        s->inflight.tail = first->prev;
    else
        slot(s, last->next)->prev = first->prev;
    s->inflight.num -= n;
    if (path->head == first->psn)
        path->head = last->path_next;
    else
        slot(s, first->path_prev)->path_next = last->path_next;
    if (path->tail == last->psn)
        path->tail = first->path_prev;
    else
        slot(s, last->path_next)->path_prev = first->path_prev;
}

void mrd_sent_ack_run(struct mrd_sents *s, const struct mrd_sent *first, uint32_t n,
                      struct mrd_paths *paths, uint32_t *bytes, uint32_t *payload)
{
    const uint32_t begin = first->psn, end = first->psn + n;

    *bytes = *payload = 0;
    unlink_run(s, first, slot(s, end - 1), n, &paths->path[first->path]);
    for (uint32_t psn = begin; psn != end; psn++) {
        struct mrd_sent_page *page = *page_of(s, psn);
        struct mrd_sent *rec = &page->rec[psn % MRD_SENT_PAGE];

        *bytes += rec->bytes;
        *payload += rec->len;
        rec->state = MRD_SENT_FREE;
        page->used--;
        page->acked |= (uint16_t)(1u << psn % MRD_SENT_PAGE);
    }
    s->inflight_bytes -= *bytes;
    if (s->una == begin)
        s->una = end;
    while (s->una != s->next && is_acked(s, s->una))
        s->una++;
    for (uint32_t psn = begin; psn != end; psn++)
        if (psn % MRD_SENT_PAGE == MRD_SENT_PAGE - 1 || psn + 1 == end)
            page_drop(s, psn);
}

/* Returns the acked ones of 64 PSNs from `base` on, which is a multiple of MRD_SENT_PAGE. */
static uint64_t acked_bits(const struct mrd_sents *s, uint32_t base)
{
    uint64_t bits = 0;

    for (uint32_t i = 0; i < 64; i += MRD_SENT_PAGE) {
        const struct mrd_sent_page *page = *page_of(s, base + i);

        bits |= (uint64_t)(page ? page->acked : UINT16_MAX) << i;
    }
    return bits;
}

uint64_t mrd_sent_new_bits(const struct mrd_sents *s, uint32_t base, uint64_t bits)
{
    /* Bits below una were acked before, those from next on were never sent. */
    uint32_t lo = s->una - base;
    uint32_t hi = s->next - base;

    if ((int32_t)hi <= 0 || (int32_t)lo >= 64)
        return 0;
    if ((int32_t)lo > 0)
        bits &= ~0ull << lo;
    if ((int32_t)hi < 64)
        bits &= (1ull << hi) - 1;
    return bits & ~acked_bits(s, base);
}

struct mrd_sent *mrd_sent_oldest(const struct mrd_sents *s)
{
    const struct mrd_sent_chain *const chains[] = {&s->inflight, &s->lost, &s->lost_control};
    struct mrd_sent *oldest = NULL;

    for (unsigned i = 0; i < 3; i++) {
        struct mrd_sent *rec = chains[i]->num ? mrd_sent_get(s, chains[i]->head) : NULL;

        if (rec && (!oldest || rec->tx_ns < oldest->tx_ns))
            oldest = rec;
    }
    return oldest;
}

bool mrd_sent_audit(const struct mrd_sents *s, const struct mrd_paths *paths)
{
    uint32_t on_path[MRD_PATHS_MAX] = {0}, inflight = 0, lost = 0;
    uint64_t bytes = 0;

    for (uint32_t psn = s->una; psn != s->next; psn++) {
        const struct mrd_sent *rec = mrd_sent_get(s, psn);

        if (!rec) {
            if (!is_acked(s, psn))
                return false;
            continue;
        }
        lost += rec->state == MRD_SENT_LOST;
        if (rec->state != MRD_SENT_INFLIGHT)
            continue;
        inflight++;
        on_path[rec->path]++;
        bytes += rec->bytes;
    }
    for (uint32_t i = 0; i < paths->num; i++) {
        if (on_path[i] != paths->load[i].out_packets)
            return false;
    }
    return bytes == s->inflight_bytes && inflight == s->inflight.num &&
           lost == s->lost.num + s->lost_control.num;
}
