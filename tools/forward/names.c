/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/names.h"

#include <event2/dns.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

enum { FILES = 2, HOST_BYTES = 256 };

static const char *const paths[FILES] = {"/etc/hosts", "/etc/resolv.conf"};

/* What the files said at some time. Freed when a newer one is there, and all its questions are answered. */
struct book {
    struct evdns_base *searching, *complete; /* the second one appends no domains */
    struct stat stat[FILES];                 /* zero: there was none */
    uint32_t asked;                          /* questions that are not answered */
    struct book *next;
};

struct names {
    struct event_base *base;
    struct book *books;  /* the newest one first; owned */
    struct event *sweep; /* frees old books, outside of their callbacks */
    bool is_closing;
};

struct question {
    struct names *names;
    struct book *book;
    struct evdns_getaddrinfo_request *request; /* NULL: it is being made */
    names_fn *fn;                              /* NULL: cancelled */
    void *arg;
    bool is_over;
};

/* ------------------------------------------------------------------------------------------ books */

static struct evdns_base *open_dns(struct event_base *base, bool search)
{
    struct evdns_base *dns = evdns_base_new(base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);

    if (!dns)
        return NULL;
    /* Without name servers there are numbers and /etc/hosts. */
    (void)evdns_base_resolv_conf_parse(dns, DNS_OPTIONS_ALL, paths[1]);
    if (!search)
        evdns_base_search_clear(dns);
    /* One name whose server is silent does not hold up the others. */
    (void)evdns_base_set_option(dns, "max-inflight:", "16384");
    return dns;
}

static void close_book(struct book *book)
{
    if (book->searching)
        evdns_base_free(book->searching, 1);
    if (book->complete)
        evdns_base_free(book->complete, 1);
    free(book);
}

static void look(struct stat stats[FILES])
{
    for (int i = 0; i < FILES; i++) {
        if (stat(paths[i], &stats[i]) != 0)
            memset(&stats[i], 0, sizeof(stats[i]));
    }
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* False: no memory. */
static bool open_book(struct names *names, const struct stat stats[FILES])
{
    struct book *book = calloc(1, sizeof(*book));

    if (!book)
        return false;
    memcpy(book->stat, stats, sizeof(book->stat));
    book->searching = open_dns(names->base, true);
    book->complete = open_dns(names->base, false);
    if (!book->searching || !book->complete) {
        close_book(book);
        return false;
    }
    book->next = names->books;
    names->books = book;
    return true;
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
    struct names *names = arg;
    (void)fd, (void)what;

    for (struct book **at = &names->books->next, *book; (book = *at);) {
        if (book->asked) {
            at = &book->next;
            continue;
        }
        *at = book->next;
        close_book(book);
    }
}

/* The book of the files as they are; an older one if there is no memory for it. */
static struct book *current(struct names *names)
{
    struct stat stats[FILES];
    struct timeval now = {0};

    look(stats);
    if ((!is_same(&stats[0], &names->books->stat[0]) ||
         !is_same(&stats[1], &names->books->stat[1])) &&
        open_book(names, stats))
        (void)evtimer_add(names->sweep, &now);
    return names->books;
}

/* -------------------------------------------------------------------------------------- questions */

static void on_answer(int error, struct evutil_addrinfo *addresses, void *arg)
{
    struct question *q = arg;
    struct names *names = q->names;
    struct timeval now = {0};
    bool is_made = q->request != NULL;

    q->is_over = true;
    if (--q->book->asked == 0 && q->book != names->books && !names->is_closing)
        (void)evtimer_add(names->sweep, &now);
    if (q->fn)
        q->fn(error, addresses, q->arg);
    else if (addresses)
        evutil_freeaddrinfo(addresses);
    if (is_made)
        free(q);
}

struct question *names_ask(struct names *names, const char *host, const char *port, names_fn *fn,
                           void *arg)
{
    const struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct question *q = calloc(1, sizeof(*q));
    struct evdns_getaddrinfo_request *request;
    size_t len = strnlen(host, HOST_BYTES - 1);
    char name[HOST_BYTES];
    bool is_complete = len > 1 && host[len - 1] == '.';

    if (!q) {
        fn(EVUTIL_EAI_MEMORY, NULL, arg);
        return NULL;
    }
    memcpy(name, host, len - is_complete);
    name[len - is_complete] = '\0';
    *q = (struct question){.names = names, .book = current(names), .fn = fn, .arg = arg};
    q->book->asked++;
    request = evdns_getaddrinfo(is_complete ? q->book->complete : q->book->searching, name, port,
                                &hints, on_answer, q);
    if (q->is_over) { /* it returns NULL then */
        free(q);
        return NULL;
    }
    q->request = request;
    return q;
}

void names_cancel(struct question *question)
{
    question->fn = NULL;
    evdns_getaddrinfo_cancel(question->request);
}

/* ---------------------------------------------------------------------------------------- opening */

struct names *names_open(struct event_base *base)
{
    struct names *names = calloc(1, sizeof(*names));
    struct stat stats[FILES];

    if (!names)
        return NULL;
    names->base = base;
    names->sweep = evtimer_new(base, on_sweep, names);
    look(stats);
    if (names->sweep && open_book(names, stats))
        return names;
    if (names->sweep)
        event_free(names->sweep);
    free(names);
    return NULL;
}

void names_close(struct names *names)
{
    struct event_base *base = names->base;

    for (struct book *book = names->books; book; book = book->next) {
        evdns_base_free(book->searching, 1); /* lookups under way call back, in the loop */
        evdns_base_free(book->complete, 1);
    }
    event_del(names->sweep);
    names->is_closing = true;
    (void)event_base_loop(base, EVLOOP_NONBLOCK);
    event_free(names->sweep);
    for (struct book *book = names->books, *next; book; book = next) {
        next = book->next;
        free(book);
    }
    free(names);
}
