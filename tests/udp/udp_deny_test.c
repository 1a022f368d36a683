/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sandboxes and kernels that refuse single system calls or socket options: whatever of these is
 * not there, contexts open, log once what is missing, and move messages.
 *
 * A filter of system calls cannot be taken off, so each case has a process of its own.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "udp_process.h"

#include "tests/kit/kit.h"

enum {
    RULES_MAX = 12,
    CODE_MAX = RULES_MAX * 7 + 1,
    LINES_MAX = 64,
    SHORTS = 100,
    LITTER = 200,
    SHORT_BYTES = 64,
    LONGS = 4,
    LONG_BYTES = 1 << 20,
    DEPTH = SHORTS,
    HALF_BYTES = SHORTS * SHORT_BYTES + LONGS * LONG_BYTES, /* of memory: what is sent, or comes */
};

/* A system call that fails; setsockopt() and getsockopt() only for that option, socket() for that family. */
struct rule {
    int call;
    int level, option; /* of socket(): family, 0 */
    int error;
};

struct denial {
    const char *what;
    struct rule rules[RULES_MAX]; /* up to the first without an error */
    /* What each context's log names, in one line each. */
    const char *told[RULES_MAX];
    const char *address; /* of both contexts; NULL: "::" */
    bool late;           /* denied when the contexts are open already */
};

#define SET(level, option, error)                                                                  \
    {                                                                                              \
        SYS_setsockopt, level, option, error                                                       \
    }
#define GET(level, option, error)                                                                  \
    {                                                                                              \
        SYS_getsockopt, level, option, error                                                       \
    }
#define GVISOR(level, option) SET(level, option, ENOPROTOOPT)

static const struct denial denials[] = {
    {.what = "nothing"},
    {"sendmmsg, ENOSYS",
     {{SYS_sendmmsg, 0, 0, ENOSYS}, SET(IPPROTO_UDP, UDP_SEGMENT, ENOPROTOOPT)},
     .told = {"sendmmsg()", "UDP_SEGMENT"}},
    {"sendmmsg, EPERM",
     {{SYS_sendmmsg, 0, 0, EPERM}, SET(IPPROTO_UDP, UDP_SEGMENT, ENOPROTOOPT)},
     .told = {"sendmmsg()", "UDP_SEGMENT"}},
    {"sendmmsg, EACCES, later",
     {{SYS_sendmmsg, 0, 0, EACCES}},
     .told = {"sendmmsg()"},
     .late = true},
    {"recvmmsg", .rules = {{SYS_recvmmsg, 0, 0, ENOSYS}}},
    {"IP_MTU_DISCOVER",
     {SET(IPPROTO_IP, IP_MTU_DISCOVER, ENOPROTOOPT)},
     .told = {"IP_MTU_DISCOVER"}},
    {"IP_MTU_DISCOVER, IPv4",
     {SET(IPPROTO_IP, IP_MTU_DISCOVER, EINVAL)},
     .told = {"IP_MTU_DISCOVER"},
     .address = "127.0.0.1"},
    {"IPV6_MTU_DISCOVER",
     {SET(IPPROTO_IPV6, IPV6_MTU_DISCOVER, ENOPROTOOPT)},
     .told = {"IPV6_MTU_DISCOVER"}},
    {"IP_TOS", {SET(IPPROTO_IP, IP_TOS, EPERM)}, .told = {"IP_TOS"}},
    {"IP_TOS, IPv4",
     {SET(IPPROTO_IP, IP_TOS, ENOPROTOOPT)},
     .told = {"IP_TOS"},
     .address = "127.0.0.1"},
    {"IPV6_TCLASS", {SET(IPPROTO_IPV6, IPV6_TCLASS, ENOPROTOOPT)}, .told = {"IPV6_TCLASS"}},
    {"UDP_SEGMENT", {SET(IPPROTO_UDP, UDP_SEGMENT, ENOPROTOOPT)}, .told = {"UDP_SEGMENT"}},
    {"UDP_GRO", {SET(IPPROTO_UDP, UDP_GRO, ENOPROTOOPT)}, .told = {"UDP_GRO"}},
    {"IP_RECVERR", {SET(IPPROTO_IP, IP_RECVERR, ENOPROTOOPT)}, .told = {"IP_RECVERR"}},
    {"IPV6_RECVERR", {SET(IPPROTO_IPV6, IPV6_RECVERR, ENOPROTOOPT)}, .told = {"IPV6_RECVERR"}},
    {"IP_PKTINFO",
     {SET(IPPROTO_IP, IP_PKTINFO, ENOPROTOOPT)},
     .told = {"IP_PKTINFO"},
     .address = "0.0.0.0"},
    {"IPV6_RECVPKTINFO",
     {SET(IPPROTO_IPV6, IPV6_RECVPKTINFO, EPERM)},
     .told = {"IPV6_RECVPKTINFO"}},
    {"SO_RXQ_OVFL", {SET(SOL_SOCKET, SO_RXQ_OVFL, ENOPROTOOPT)}, .told = {"SO_RXQ_OVFL"}},
    {"IP_RECVTOS", {SET(IPPROTO_IP, IP_RECVTOS, ENOPROTOOPT)}, .told = {"IP_RECVTOS"}},
    {"IPV6_RECVTCLASS",
     {SET(IPPROTO_IPV6, IPV6_RECVTCLASS, ENOPROTOOPT)},
     .told = {"IPV6_RECVTCLASS"}},
    {"IPV6_V6ONLY", {SET(IPPROTO_IPV6, IPV6_V6ONLY, ENOPROTOOPT)}, .told = {"IPV6_V6ONLY"}},
    {"IP_MTU, as qemu-user", {GET(IPPROTO_IP, IP_MTU, EOPNOTSUPP)}, .told = {"IP_MTU"}},
    {"IP_MTU, IPv4", {GET(IPPROTO_IP, IP_MTU, EPERM)}, .told = {"IP_MTU"}, .address = "127.0.0.1"},
    {"IPV6_MTU", {GET(IPPROTO_IPV6, IPV6_MTU, EOPNOTSUPP)}, .told = {"IPV6_MTU"}, .address = "::1"},
    {"IPv6", .rules = {{SYS_socket, AF_INET6, 0, EPERM}}},
    {"netlink",
     {{SYS_socket, AF_NETLINK, 0, EAFNOSUPPORT}, GET(IPPROTO_IP, IP_MTU, EOPNOTSUPP)},
     .told = {"IP_MTU"}},
    {"buffers", .rules = {SET(SOL_SOCKET, SO_RCVBUFFORCE, EPERM), SET(SOL_SOCKET, SO_RCVBUF, EPERM),
                          SET(SOL_SOCKET, SO_SNDBUF, EPERM), GET(SOL_SOCKET, SO_RCVBUF, EPERM)}},
    {"as in gVisor",
     {GVISOR(IPPROTO_IP, IP_MTU_DISCOVER),
      GVISOR(IPPROTO_IPV6, IPV6_MTU_DISCOVER),
      GVISOR(IPPROTO_UDP, UDP_SEGMENT),
      GVISOR(IPPROTO_UDP, UDP_GRO),
      GVISOR(SOL_SOCKET, SO_RXQ_OVFL),
      GVISOR(IPPROTO_IP, IP_RECVERR),
      GVISOR(IPPROTO_IPV6, IPV6_RECVERR),
      GVISOR(SOL_SOCKET, SO_RCVBUFFORCE),
      GET(IPPROTO_IP, IP_MTU, ENOPROTOOPT),
      GET(IPPROTO_IPV6, IPV6_MTU, ENOPROTOOPT),
      {SYS_sendmmsg, 0, 0, ENOSYS}},
     .told = {"IP_MTU_DISCOVER", "IPV6_MTU_DISCOVER", "UDP_SEGMENT", "UDP_GRO", "SO_RXQ_OVFL",
              "IP_RECVERR", "IPV6_RECVERR", "IP_MTU", "IPV6_MTU", "sendmmsg()"}},
};
enum { NUM_DENIALS = sizeof(denials) / sizeof(denials[0]) };

/* ------------------------------------------------------------------------------------ the filter */

struct code {
    struct sock_filter at[CODE_MAX];
    unsigned short num;
};

static void put(struct code *code, unsigned op, unsigned k, unsigned skip_unless)
{
    code->at[code->num++] =
        (struct sock_filter){(unsigned short)op, 0, (unsigned char)skip_unless, k};
}

static void put_load(struct code *code, size_t offset)
{
    put(code, BPF_LD | BPF_W | BPF_ABS, (unsigned)offset, 0);
}

/* The low half of an argument. */
static size_t argument_at(unsigned i)
{
    static const uint32_t one = 1;
    bool little = *(const uint8_t *)&one == 1;

    return offsetof(struct seccomp_data, args) + i * sizeof(uint64_t) + (little ? 0 : 4);
}

static void put_rule(struct code *code, const struct rule *r)
{
    bool option = r->call == SYS_setsockopt || r->call == SYS_getsockopt;
    bool family = r->call == SYS_socket;
    const unsigned is = BPF_JMP | BPF_JEQ | BPF_K;

    put_load(code, offsetof(struct seccomp_data, nr));
    put(code, is, (unsigned)r->call, option ? 5 : family ? 3 : 1);
    if (option || family) {
        put_load(code, argument_at(option ? 1 : 0));
        put(code, is, (unsigned)r->level, option ? 3 : 1);
    }
    if (option) {
        put_load(code, argument_at(2));
        put(code, is, (unsigned)r->option, 1);
    }
    put(code, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)r->error, 0);
}

/* For the rest of this process' life. */
static bool deny(const struct rule *rules)
{
    static struct code code;
    struct sock_fprog program = {.filter = code.at};

    code.num = 0;
    for (unsigned i = 0; i < RULES_MAX && rules[i].error; i++)
        put_rule(&code, &rules[i]);
    put(&code, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0);
    program.len = code.num;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* ----------------------------------------------------------------------------------- the log */

static struct {
    char lines[LINES_MAX][256];
    unsigned num;
} kept;

static void keep(void *arg, enum mrd_log_level level, const char *message)
{
    (void)arg;
    (void)level;
    must(kept.num < LINES_MAX);
    snprintf(kept.lines[kept.num++], sizeof(kept.lines[0]), "%s", message);
}

/* The lines that say that it is refused. */
static unsigned lines_with(const char *name)
{
    unsigned lines = 0;
    char words[64];

    snprintf(words, sizeof(words), " refused %s ", name);
    for (unsigned i = 0; i < kept.num; i++)
        lines += strstr(kept.lines[i], words) != NULL;
    return lines;
}

/* ----------------------------------------------------------------------------------- messages */

static size_t offset_of(uint32_t i, bool is_long)
{
    return is_long ? SHORTS * SHORT_BYTES + (size_t)i * LONG_BYTES : (size_t)i * SHORT_BYTES;
}

/* What is sent: each message begins with its number. */
static void open_end(struct node *n, const char *address)
{
    node_open(n,
              &(struct mrd_context_attr){
                  .address = address ? address : "::", .paths = 4, .progress = MRD_PROGRESS_MANUAL},
              1, DEPTH, 2 * HALF_BYTES);
    node_fill(n, 0, HALF_BYTES, 1);
    for (uint32_t i = 0; i < SHORTS; i++)
        memcpy(n->memory + offset_of(i, false), &i, sizeof(i));
    for (uint32_t i = 0; i < LONGS; i++)
        memcpy(n->memory + offset_of(i, true), &i, sizeof(i));
}

/* The message in a receive's place is one that the other end, whose memory is like ours, sent. */
static void check_message(struct node *n, const struct mrd_wc *wc, bool is_long, bool *came)
{
    const uint8_t *at = n->memory + HALF_BYTES + offset_of((uint32_t)wc->wr_id, is_long);
    uint32_t number;

    memcpy(&number, at, sizeof(number));
    must(number < DEPTH && !came[number]);
    came[number] = true;
    must(wc->byte_len == (is_long ? LONG_BYTES : SHORT_BYTES));
    must(memcmp(at, n->memory + offset_of(number, is_long), wc->byte_len) == 0);
}

/* `count` messages each way, all under way at once. */
static void exchange(struct node *ends, struct mrd_ah **to, uint32_t count, bool is_long)
{
    uint64_t until_ns = clock_now_ns() + PATIENCE_S / 2 * SEC_NS;
    uint32_t bytes = is_long ? LONG_BYTES : SHORT_BYTES;
    bool came[2][DEPTH] = {{false}};
    struct mrd_wc wc;

    for (unsigned e = 0; e < 2; e++)
        for (uint32_t i = 0; i < count; i++)
            node_receive(&ends[e], 0, i, HALF_BYTES + offset_of(i, is_long), bytes);
    for (unsigned e = 0; e < 2; e++)
        for (uint32_t i = 0; i < count; i++)
            node_send(&ends[e], 0, to[e], ends[!e].qp[0]->qp_num, i, offset_of(i, is_long), bytes);
    for (uint32_t left = 4 * count; left;) {
        for (unsigned e = 0; e < 2; e++) {
            if (!node_poll(&ends[e], &wc, 0))
                continue;
            must(wc.status == MRD_WC_SUCCESS);
            if (wc.opcode == MRD_WC_RECV)
                check_message(&ends[e], &wc, is_long, came[e]);
            left--;
        }
        must(clock_now_ns() < until_ns);
    }
}

/* Datagrams that are no packets: where short ones wait, some are received by each call. */
static void litter(const struct node *n)
{
    struct node_name name = node_name(n);
    char *host = name.address + (name.address[0] == '['), *colon = strrchr(host, ':');
    struct addrinfo *to;

    must(colon);
    *(colon[-1] == ']' ? colon - 1 : colon) = '\0';
    must(getaddrinfo(host, colon + 1, &(struct addrinfo){.ai_flags = AI_NUMERICHOST}, &to) == 0);
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    must(fd >= 0);
    for (unsigned i = 0; i < LITTER; i++)
        must(sendto(fd, "no packet", 1 + i % 9, 0, to->ai_addr, to->ai_addrlen) > 0);
    must(close(fd) == 0);
    freeaddrinfo(to);
}

/* ------------------------------------------------------------------------------------- the test */

static bool has_ipv6(void)
{
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Each context says it once. */
static void check_told(const struct denial *d, bool ipv6)
{
    /* A packet that could not be sent would be told, too. */
    for (unsigned i = 0; i < kept.num; i++)
        must(strstr(kept.lines[i], " refused ") || strstr(kept.lines[i], "receive buffer"));
    for (unsigned i = 0; i < RULES_MAX && d->told[i]; i++) {
        unsigned lines = lines_with(d->told[i]);

        if (strncmp(d->told[i], "IPV6", 4) == 0 && !ipv6)
            continue;
        if (lines != 2)
            fprintf(stderr, "%s: %u lines name %s, not 2\n", d->what, lines, d->told[i]);
        must(lines == 2);
    }
}

static void child(int channel)
{
    struct node ends[2];
    struct mrd_ah *to[2];
    bool ipv6 = has_ipv6();
    unsigned row;

    must(process_hear(channel, &row, sizeof(row), clock_now_ns() + PATIENCE_S * SEC_NS));
    const struct denial *d = &denials[row];
    mrd_set_log(keep, NULL, MRD_LOG_WARN);
    must(d->late || deny(d->rules));
    for (unsigned e = 0; e < 2; e++)
        open_end(&ends[e], d->address);
    must(!d->late || deny(d->rules));
    for (unsigned e = 0; e < 2; e++)
        to[e] = node_ah(&ends[e], node_name(&ends[!e]).address);
    for (unsigned e = 0; e < 2; e++)
        litter(&ends[e]);
    exchange(ends, to, SHORTS, false);
    exchange(ends, to, LONGS, true);
    check_told(d, ipv6);
    for (unsigned e = 0; e < 2; e++) {
        must(mrd_destroy_ah(to[e]) == 0);
        node_close(&ends[e]);
    }
}

static void filtered(int channel)
{
    static const struct rule none[RULES_MAX];
    bool ok = deny(none);

    process_tell(channel, &ok, sizeof(ok));
}

TEST(udp_deny__each)
{
    struct process p;

    for (unsigned row = 0; row < NUM_DENIALS; row++) {
        if (denials[row].address && strstr(denials[row].address, "::1") && !has_ipv6())
            continue;
        print_message("    %s\n", denials[row].what);
        process_start(&p, child);
        process_tell(p.channel, &row, sizeof(row));
        process_join(&p);
    }
}

int kit_before_all(void)
{
    struct process p;
    bool ok = false;

    process_start(&p, filtered);
    (void)process_hear(p.channel, &ok, sizeof(ok), clock_now_ns() + PATIENCE_S * SEC_NS);
    process_join(&p);
    if (!ok)
        print_message("skipped: this system takes no filter of system calls (seccomp)\n");
    return ok ? 0 : KIT_SKIPPED;
}
