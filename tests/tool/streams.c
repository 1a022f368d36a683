/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many TCP connections that open, transfer, end and break at random, with every byte compared at
 * both ends. For what carries TCP connections.
 *
 * usage: streams serve ADDRESS PORT
 *        streams drive ADDRESS PORT SEED CONNECTIONS SECONDS [DEED]
 *
 * ADDRESS is of IPv4, or the path of a unix socket. `drive` keeps so many connections open for so
 * long, then waits for all to end. A connection begins with a head that says what both ends shall
 * do; with DEED, a number of enum deed, all do the same. Both print one line; exit 1 if a byte was
 * wrong, missing or too many, or if a connection did not end. `serve` ends with SIGTERM. Connections
 * of `drive` that all rest (DRIVER_RESTS) do so until SIGUSR1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 20000,
    CHUNK = 16384,
    LEFT_BYTES = 280 << 10,
    STUCK_MS = 40000, /* without a byte or an end: it hangs */
    PAUSE_MS = 700,   /* of those who are slow to read */
    LONG_MS = 2500,   /* of those who are slower, and before who fades ends his half, and breaks */
    TOLD_MS = 15000,  /* for a break to be told, where nobody sends */
    REST_MS = 2000,   /* of those who rest, after so much */
    RESTS_BYTES = 16 << 20,
    RESTS_LONG_MS = 200000, /* then it hangs */
};

enum deed {
    ORDERLY,        /* all is sent, both ways */
    SLOW_SERVER,    /* which reads late */
    SLOW_DRIVER,    /* likewise */
    DRIVER_BREAKS,  /* in the middle, by a reset */
    SERVER_BREAKS,  /* likewise */
    DRIVER_LEAVES,  /* it closes when it has sent all, and the server reads late */
    DRIVER_FADES,   /* it ends its half, and then breaks: the server, which is silent, is told */
    SERVER_REFUSES, /* it answers, and closes without reading: the driver gets the whole answer */
    DRIVER_REFUSES, /* likewise */
    DRIVER_RESTS,   /* it sends much, and nothing for a while before it ends */
    DEEDS,
};

struct head {
    uint64_t seed, up, down, break_at;
    uint32_t deed, magic;
};

enum { MAGIC = 0x7e57da7a };

struct place {
    struct sockaddr_storage any;
    socklen_t len;
};

struct conn {
    int fd; /* -1: free */
    struct head head;
    size_t head_done; /* bytes of it sent or received */
    uint64_t sent, received;
    bool connected, sent_all, received_all;
    int left; /* bytes of one who refuses that the other end's kernel has not got */
    uint64_t paused_until, last_ms;
};

static struct conn conns[CONNECTIONS_MAX];
static struct pollfd polls[CONNECTIONS_MAX + 1];
static int num_conns; /* slots that were ever used */
static bool serving;
static uint32_t only = DEEDS; /* that deed; DEEDS: any */
static uint64_t random_state, done, broken, wrong, bytes_total;
static volatile sig_atomic_t over, woken;

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t draw(uint64_t below)
{
    random_state++;
    return mix(random_state) % below;
}

static uint8_t byte_at(uint64_t seed, uint64_t offset)
{
    return (uint8_t)(mix(seed + offset / 8) >> 8 * (offset % 8));
}

static uint64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void complain(const struct conn *c, const char *what)
{
    wrong++;
    fprintf(
        stderr,
        "streams: %s: seed %llx, deed %u, %llu up, %llu down: %s after %llu sent, %llu received\n",
        serving ? "serve" : "drive", (unsigned long long)c->head.seed, c->head.deed,
        (unsigned long long)c->head.up, (unsigned long long)c->head.down, what,
        (unsigned long long)c->sent, (unsigned long long)c->received);
}

static uint64_t to_send(const struct conn *c)
{
    return serving ? c->head.down : c->head.up;
}

static uint64_t to_receive(const struct conn *c)
{
    return serving ? c->head.up : c->head.down;
}

static bool may_break(const struct conn *c)
{
    return c->head.deed == DRIVER_BREAKS || c->head.deed == SERVER_BREAKS ||
           c->head.deed == DRIVER_FADES;
}

/* This end sends all, and closes with input that it never reads. */
static bool refuses(const struct conn *c)
{
    return c->head.deed == (serving ? SERVER_REFUSES : DRIVER_REFUSES) &&
           c->head_done == sizeof(c->head);
}

static bool is_refused(const struct conn *c)
{
    return c->head.deed == (serving ? DRIVER_REFUSES : SERVER_REFUSES);
}

static void end(struct conn *c, bool by_reset)
{
    struct linger linger = {.l_onoff = 1};

    if (by_reset)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(c->fd);
    c->fd = -1;
    done++;
    broken += by_reset;
}

/* The other end went, or this one: is that as it was meant to be? */
static void end_early(struct conn *c, const char *what)
{
    bool is_answered = is_refused(c) && c->received == to_receive(c);

    if (!may_break(c) && !is_answered && (serving ? c->head_done == sizeof(c->head) : true))
        complain(c, what);
    end(c, true);
}

static void end_if_done(struct conn *c)
{
    if (c->sent_all && c->received_all)
        end(c, false);
}

/* False: the connection is no more. */
static bool break_in_time(struct conn *c)
{
    if (c->head.deed != (serving ? SERVER_BREAKS : DRIVER_BREAKS) ||
        c->head_done < sizeof(c->head) || c->sent + c->received < c->head.break_at)
        return true;
    end(c, true);
    return false;
}

/* All is sent, and the end of it is to come later. */
static bool rests(const struct conn *c)
{
    uint64_t ms = c->head.deed == DRIVER_FADES ? LONG_MS : REST_MS;

    if (serving || c->sent < to_send(c) ||
        (c->head.deed != DRIVER_FADES && c->head.deed != DRIVER_RESTS))
        return false;
    return only == DRIVER_RESTS ? !woken : now_ms() < c->last_ms + ms;
}

static void do_send(struct conn *c)
{
    uint8_t bytes[CHUNK];
    uint64_t left = to_send(c) - c->sent;
    size_t n = left < CHUNK ? (size_t)left : CHUNK;
    ssize_t rc;

    if (!serving && c->head_done < sizeof(c->head)) {
        rc = send(c->fd, (uint8_t *)&c->head + c->head_done, sizeof(c->head) - c->head_done,
                  MSG_NOSIGNAL);
        if (rc < 0 && errno != EAGAIN)
            end_early(c, strerror(errno));
        else if (rc > 0)
            c->head_done += (size_t)rc;
        return;
    }
    if (n > 1000 && draw(4) == 0) /* pieces of all sizes */
        n = 1 + (size_t)draw(1000);
    for (size_t i = 0; i < n; i++)
        bytes[i] = byte_at(c->head.seed + serving, c->sent + i);
    rc = n ? send(c->fd, bytes, n, MSG_NOSIGNAL) : 0;
    if (rc < 0 && errno == EAGAIN)
        return;
    if (rc < 0 && is_refused(c)) { /* what came before is there to be read */
        c->sent_all = true;
        end_if_done(c);
        return;
    }
    if (rc < 0) {
        end_early(c, strerror(errno));
        return;
    }
    if (rc > 0)
        c->last_ms = now_ms();
    c->sent += (uint64_t)rc;
    bytes_total += (uint64_t)rc;
    if (!break_in_time(c) || c->sent < to_send(c) || rests(c))
        return;
    c->last_ms = now_ms();
    c->sent_all = true;
    if (refuses(c))
        return;
    if (!serving && c->head.deed == DRIVER_LEAVES) {
        end(c, false);
        return;
    }
    shutdown(c->fd, SHUT_WR);
    end_if_done(c);
}

static void take(struct conn *c, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != byte_at(c->head.seed + !serving, c->received + i)) {
            complain(c, "a wrong byte");
            end(c, true);
            return;
        }
    }
    c->received += n;
    if (c->received > to_receive(c)) {
        complain(c, "too many bytes");
        end(c, true);
    }
}

static void do_receive(struct conn *c)
{
    uint8_t bytes[CHUNK];
    ssize_t rc;

    if (serving && c->head_done < sizeof(c->head))
        rc = recv(c->fd, (uint8_t *)&c->head + c->head_done, sizeof(c->head) - c->head_done, 0);
    else
        rc = recv(c->fd, bytes, sizeof(bytes), 0);
    if (rc < 0 && errno == EAGAIN)
        return;
    if (rc < 0) {
        end_early(c, strerror(errno));
        return;
    }
    c->last_ms = now_ms();
    if (rc == 0) {
        if (c->received != to_receive(c) || (serving && c->head_done < sizeof(c->head))) {
            end_early(c, "the end came too early");
            return;
        }
        c->received_all = true;
        end_if_done(c);
        return;
    }
    if (serving && c->head_done < sizeof(c->head)) {
        c->head_done += (size_t)rc;
        if (c->head_done < sizeof(c->head))
            return;
        if (c->head.magic != MAGIC) {
            complain(c, "a wrong head");
            end(c, true);
            return;
        }
        if (c->head.deed == SLOW_SERVER || (is_refused(c) && draw(3) == 0))
            c->paused_until = now_ms() + PAUSE_MS;
        if (c->head.deed == DRIVER_LEAVES)
            c->paused_until = now_ms() + LONG_MS;
        return;
    }
    take(c, bytes, (size_t)rc);
    if (c->fd >= 0)
        (void)break_in_time(c);
}

static struct conn *add(int fd)
{
    int i = 0;

    while (i < num_conns && conns[i].fd >= 0)
        i++;
    if (i == CONNECTIONS_MAX) {
        close(fd);
        return NULL;
    }
    num_conns += i == num_conns;
    conns[i] = (struct conn){.fd = fd, .last_ms = now_ms()};
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return &conns[i];
}

static uint64_t draw_size(void)
{
    switch (draw(10)) {
    case 0:
        return 0;
    case 1:
        return draw(4 << 20);
    case 2:
    case 3:
        return draw(256 << 10);
    default:
        return draw(8192);
    }
}

static bool open_one(const struct place *to)
{
    int fd = socket(to->any.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);

    if (fd < 0 ||
        (connect(fd, (const struct sockaddr *)&to->any, to->len) != 0 && errno != EINPROGRESS)) {
        fprintf(stderr, "streams: connect: %s\n", strerror(errno));
        wrong++;
        return false;
    }
    struct conn *c = add(fd);
    c->head = (struct head){
        .seed = draw(UINT64_MAX) | 2, .up = draw_size(), .down = draw_size(), .magic = MAGIC};
    c->head.deed = (uint32_t)draw(2 * DEEDS);
    if (c->head.deed >= DEEDS)
        c->head.deed = ORDERLY;
    if (only < DEEDS)
        c->head.deed = only;
    if (c->head.deed == DRIVER_LEAVES || c->head.deed == DRIVER_FADES)
        c->head.down = 0;
    if (c->head.deed == DRIVER_LEAVES) /* more than a first credit, less than that and a buffer */
        c->head.up = LEFT_BYTES + draw(LEFT_BYTES / 2);
    if (c->head.deed == DRIVER_RESTS) {
        c->head.up = only == DRIVER_RESTS ? RESTS_BYTES : c->head.up;
        c->head.down = 0;
    }
    if (c->head.deed == SERVER_REFUSES) /* something is left unread */
        c->head.up += 1 + draw(LEFT_BYTES);
    if (c->head.deed == DRIVER_REFUSES)
        c->head.down += 1 + draw(LEFT_BYTES);
    c->head.break_at = draw(c->head.up + c->head.down + 1);
    if (c->head.deed == SLOW_DRIVER || (is_refused(c) && draw(3) == 0))
        c->paused_until = now_ms() + PAUSE_MS;
    return true;
}

/* It neither sends nor ends its half. */
static bool waits_for_break(const struct conn *c)
{
    return serving && c->head.deed == DRIVER_FADES && c->head_done == sizeof(c->head);
}

/* One end breaks when both halves are silent, the other one waits to be told. True: it is over. */
static bool fades(struct conn *c, short revents, uint64_t now)
{
    if (!serving && c->sent_all && now > c->last_ms + LONG_MS) {
        end(c, true);
        return true;
    }
    if (!serving || !c->received_all)
        return false;
    if (now > c->last_ms + TOLD_MS)
        complain(c, "nobody told of the break");
    if (revents & (POLLERR | POLLHUP) || now > c->last_ms + TOLD_MS) {
        end(c, true);
        return true;
    }
    return false;
}

/* A break while nothing is to be read shows as an error only. True: it is over. */
static bool ends_by_error(struct conn *c, short revents)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (!(revents & POLLERR) || waits_for_break(c) || !(c->received_all || refuses(c)))
        return false;
    (void)getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    end_early(c, strerror(error));
    return true;
}

/* Closes when the other end's kernel has all, and has sent something. True: it is over. */
static bool refuse_in_time(struct conn *c)
{
    int unread = 0, left = 0;

    if (!c->sent_all || ioctl(c->fd, FIONREAD, &unread) != 0 || ioctl(c->fd, SIOCOUTQ, &left) != 0)
        return false;
    if (left != c->left)
        c->last_ms = now_ms(); /* a full socket buffer takes long to go: it does not hang */
    c->left = left;
    if (!unread || left)
        return false;
    end(c, false);
    return true;
}

static void serve_polls(int num)
{
    uint64_t now = now_ms();

    for (int i = 0; i < num; i++) {
        struct conn *c = &conns[i];

        if (c->fd < 0 || ends_by_error(c, polls[i].revents))
            continue;
        if (polls[i].revents & (POLLIN | POLLERR | POLLHUP) && now >= c->paused_until &&
            !(waits_for_break(c) && c->received_all) && !refuses(c))
            do_receive(c);
        if (c->fd >= 0 && polls[i].revents & POLLOUT)
            do_send(c);
        if (c->fd >= 0 && refuses(c) && refuse_in_time(c))
            continue;
        if (c->fd >= 0 && c->head.deed == DRIVER_FADES && fades(c, polls[i].revents, now))
            continue;
        if (c->fd >= 0 &&
            now > c->last_ms + (c->head.deed == DRIVER_RESTS ? RESTS_LONG_MS : STUCK_MS)) {
            complain(c, "stuck");
            end(c, true);
        }
    }
}

static int fill_polls(void)
{
    uint64_t now = now_ms();
    int open = 0;

    for (int i = 0; i < num_conns; i++) {
        struct conn *c = &conns[i];
        bool has_head = !serving || c->head_done == sizeof(c->head);

        polls[i] = (struct pollfd){.fd = c->fd};
        if (c->fd < 0)
            continue;
        open++;
        if (!c->received_all && now >= c->paused_until && !refuses(c))
            polls[i].events |= POLLIN;
        if (!c->sent_all && has_head && !waits_for_break(c) && !rests(c))
            polls[i].events |= POLLOUT;
        /* Errors would be told all the time. */
        if (!polls[i].events && !waits_for_break(c) && !rests(c) && !refuses(c))
            polls[i].fd = -1;
    }
    return open;
}

static void on_term(int signal)
{
    (void)signal;
    over = 1;
}

static void on_usr1(int signal)
{
    (void)signal;
    woken = 1;
}

static int report(void)
{
    printf("%llu connections, %llu broken, %llu bytes, %llu wrong\n", (unsigned long long)done,
           (unsigned long long)broken, (unsigned long long)bytes_total, (unsigned long long)wrong);
    return wrong ? 1 : 0;
}

static int serve(const struct place *at)
{
    int fd = socket(at->any.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1, got;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (const struct sockaddr *)&at->any, at->len) != 0 || listen(fd, 4096) != 0) {
        perror("streams: listen");
        return 1;
    }
    serving = true;
    while (!over) {
        int num, open = fill_polls();

        num = num_conns;
        polls[num] = (struct pollfd){.fd = fd, .events = POLLIN};
        (void)open;
        if (poll(polls, (nfds_t)num + 1, 50) < 0)
            continue;
        serve_polls(num);
        while ((got = accept(fd, NULL, NULL)) >= 0)
            (void)add(got);
    }
    return report();
}

static int drive(const struct place *to, int connections, int seconds)
{
    uint64_t end_ms = now_ms() + (uint64_t)seconds * 1000;

    while (!over) {
        bool more = now_ms() < end_ms;
        int open = fill_polls();

        for (int i = 0; more && open < connections && i < 32; i++, open++) {
            if (!open_one(to))
                return report();
        }
        open = fill_polls();
        if (!more && open == 0)
            break;
        if (poll(polls, (nfds_t)num_conns, 50) >= 0)
            serve_polls(num_conns);
    }
    return report();
}

/* False: it is no address. */
static bool find(const char *address, const char *port, struct place *place)
{
    struct sockaddr_in *in = (struct sockaddr_in *)&place->any;
    struct sockaddr_un *un = (struct sockaddr_un *)&place->any;

    memset(place, 0, sizeof(*place));
    if (*address == '/') {
        un->sun_family = AF_UNIX;
        snprintf(un->sun_path, sizeof(un->sun_path), "%s", address);
        place->len = sizeof(*un);
        return true;
    }
    in->sin_family = AF_INET;
    in->sin_port = htons((uint16_t)atoi(port));
    place->len = sizeof(*in);
    return inet_pton(AF_INET, address, &in->sin_addr) == 1;
}

int main(int argc, char **argv)
{
    bool is_serve = argc == 4 && strcmp(argv[1], "serve") == 0;
    bool is_drive = (argc == 7 || argc == 8) && strcmp(argv[1], "drive") == 0;
    struct place place;
    struct rlimit files;

    if ((!is_serve && !is_drive) || !find(argv[2], argv[3], &place)) {
        fputs("usage: streams serve ADDRESS PORT\n"
              "       streams drive ADDRESS PORT SEED CONNECTIONS SECONDS [DEED]\n",
              stderr);
        return 2;
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    signal(SIGTERM, on_term);
    signal(SIGUSR1, on_usr1);
    if (is_serve)
        return serve(&place);
    if (argc == 8)
        only = (uint32_t)atoi(argv[7]);
    random_state = mix(strtoull(argv[4], NULL, 0));
    return drive(&place, atoi(argv[5]), atoi(argv[6]));
}
