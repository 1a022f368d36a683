/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/options.h"
#include "tools/forward/pool.h"
#include "tools/forward/say.h"

enum {
    SERVE = 1 << FORWARD_SERVE,
    CONNECT = 1 << FORWARD_CONNECT,
    PIPE = 1 << FORWARD_PIPE,
    MEMORY_BYTES_MIN = 32 << 20,
};

static enum options_result wrong(const char *format, const char *what)
{
    say(format, what);
    fputs("Try 'mrd_forward --help'.\n", stderr);
    return OPTIONS_WRONG;
}

/* ------------------------------------------------------------------- arguments of our own forms */

/* Decimal only, as the ports of addresses are. */
static bool parse_port(const char *text, uint16_t *port)
{
    unsigned long value = strtoul(text, NULL, 10); /* ULONG_MAX if it is more than that */

    if (text[strspn(text, "0123456789")] || value < 1 || value > UINT16_MAX)
        return false;
    *port = (uint16_t)value;
    return true;
}

/* Takes ADDR, ADDR:PORT, :PORT, [ADDR]:PORT; "*" and "" are any. */
static bool parse_local(struct options *o, const char *text)
{
    const char *colon = strrchr(text, ':');
    uint16_t port = MRD_DEFAULT_PORT;
    size_t len = strlen(text);

    if (colon && (strchr(text, ':') == colon || (text[0] == '[' && colon[-1] == ']'))) {
        if (!parse_port(colon + 1, &port))
            return false;
        len = (size_t)(colon - text);
    }
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (len >= sizeof(o->address))
        return false;
    memcpy(o->address, text, len);
    o->address[len] = '\0';
    o->hub.link.port = port;
    o->hub.link.address = len && strcmp(o->address, "*") != 0 ? o->address : NULL;
    return true;
}

static int take_listen(const struct option_value *v)
{
    struct options *o = v->to;

    o->listen = true;
    return parse_local(o, v->text) ? 0 : -EINVAL;
}

static int take_bind(const struct option_value *v)
{
    struct options *o = v->to;

    bool good = parse_local(o, v->text);
    o->hub.link.port = 0;
    return good ? 0 : -EINVAL;
}

/* -L and -D */
static int take_forward(const struct option_value *v)
{
    struct options *o = v->to;
    struct forward *f = &o->forwards[o->num_forwards];
    size_t len = strlen(v->text);

    if (o->num_forwards == OPTIONS_ROWS_MAX)
        return option_fail(v->error, "'%s' is one -L or -D too many", v->text);
    if (len > 4 && strcmp(v->text + len - 4, "/udp") == 0)
        return option_fail(v->error, "'%s': UDP is not forwarded, only streams are", v->text);
    if (v->row->letter == 'D' ? !forward_parse_socks(f, v->text) : !forward_parse(f, v->text))
        return -EINVAL;
    o->num_forwards++;
    return 0;
}

static int take_allow(const struct option_value *v)
{
    struct options *o = v->to;

    if (o->num_allow == OPTIONS_ROWS_MAX)
        return option_fail(v->error, "'%s' is one --allow too many", v->text);
    if (!address_parse(&o->allow[o->num_allow], v->text, true))
        return -EINVAL;
    o->num_allow++;
    return 0;
}

static int take_user(const struct option_value *v)
{
    ((struct options *)v->to)->user = v->text;
    return *v->text ? 0 : -EINVAL;
}

static int take_key_file(const struct option_value *v)
{
    ((struct options *)v->to)->hub.link.key_file = v->text;
    return *v->text ? 0 : -EINVAL;
}

/* ------------------------------------------------------------------------------------ the table */

#define IN(member) OPTION_MEMBER(struct options, member)

static const struct option_row rows[] = {
    {"allow", 'a', OPTION_OTHER, 0, 0, 0, 0, "HOST:PORT",
     .help = "a target; '*' is any host, or any port; /PATH a unix socket", .modes = SERVE,
     .heading = "Options", .expected = "HOST:PORT, either may be '*', or /PATH",
     .take = take_allow},
    {"connect-timeout", 't', OPTION_COUNT, IN(connect_timeout_s), 1, 50, "S",
     .help = "for a target to answer", .value = "10", .modes = SERVE},
    {"forward", 'L', OPTION_OTHER, 0, 0, 0, 0, "SPEC",
     .help = "[BIND:]PORT:HOST:PORT, with a /PATH in place of either side; "
             "BIND: loopback, as without it, or an address, or '*'",
     .modes = CONNECT, .expected = "[BIND:]PORT:HOST:PORT, or a /PATH for either side",
     .take = take_forward},
    {"socks", 'D', OPTION_OTHER, 0, 0, 0, 0, "[BIND:]PORT",
     .help = "SOCKS 5; no authentication, so loopback only", .modes = CONNECT,
     .expected = "[BIND:]PORT", .take = take_forward},
    {"receive-only", 'r', OPTION_FLAG, IN(receive_only), 0, 0, NULL,
     .help = "do not read standard input", .modes = PIPE},
    {"listen", 'l', OPTION_OTHER, 0, 0, 0, 0, "ADDR[:PORT]",
     .help = "the address to be reached at (any; port 4793)", .modes = SERVE | PIPE,
     .expected = "ADDR[:PORT]", .take = take_listen},
    {"bind", 'b', OPTION_OTHER, 0, 0, 0, 0, "ADDR", .help = "the address to send from (any)",
     .modes = CONNECT | PIPE, .expected = "ADDR", .take = take_bind},
    {"paths", 'p', OPTION_COUNT, IN(hub.link.paths), 1, 256, "N",
     .help = "UDP source ports to spray over (32)"},
    {"memory", 'm', OPTION_BYTES, IN(hub.link.memory_bytes), MEMORY_BYTES_MIN, UINT64_C(1) << 40,
     "BYTES", .help = "of all buffers, with K, M or G; touched as needed", .value = "1G"},
    {"window", 'w', OPTION_BYTES, IN(window_bytes), LINK_DATA_BYTES,
     (uint64_t)FLOW_WINDOW_MAX *LINK_DATA_BYTES, "BYTES", .help = "of a stream, at most",
     .value = "16M"},
    {"streams", 'n', OPTION_COUNT, IN(hub.max_streams), 1, UINT16_MAX, "N",
     .help = "at a time, at most", .value = "16000"},
    {"peer-timeout", 'T', OPTION_COUNT, IN(peer_timeout_s), 1, 3600, "S",
     .help = "a silent server or client is given up after so long", .value = "8"},
    {"user", 'u', OPTION_OTHER, 0, 0, 0, 0, "USER", .help = "become USER when all is open",
     .expected = "a user's name", .take = take_user},
    {"key-file", 'k', OPTION_OTHER, 0, 0, 0, 0, "FILE",
     .help = "of keys, one at each end: packets are encrypted and authenticated",
     .expected = "a file's name", .take = take_key_file},
    {"stats", 's', OPTION_FLAG, IN(stats), 0, 0, NULL,
     .help = "a line each second; SIGUSR1 makes a full report"},
    {"verbose", 'v', OPTION_FLAG, IN(verbose), 0, 0, NULL, .help = "a line for each connection"},
    {"help", 'h', OPTION_STOP, 0, 0, OPTIONS_HELP, 0, NULL, .help = "print this"},
    {"version", 'V', OPTION_STOP, 0, 0, OPTIONS_VERSION, 0, NULL, .help = "print the version"},
    {0},
};

static const char *const modes[] = {"serve", "connect", "pipe", NULL};

static const struct option_table table = {.rows = rows, .modes = modes};

void options_help(void)
{
    fputs("Usage: mrd_forward serve [--listen ADDR[:PORT]] --allow HOST:PORT...\n"
          "       mrd_forward connect -L [BIND:]PORT:HOST:PORT... [-D [BIND:]PORT] "
          "SERVER[:PORT]\n"
          "       mrd_forward pipe SERVER[:PORT] [HOST:PORT]\n"
          "       mrd_forward pipe --listen ADDR[:PORT]\n"
          "Carries TCP connections, unix sockets and pipes over all paths of the network at "
          "once.\n"
          "serve, at the far end, connects to targets for others; connect, at the near end,\n"
          "listens; pipe joins standard input and output to a target of a server, or to a\n"
          "listening pipe.\n",
          stdout);
    option_help(stdout, &table, -1);
    fputs("\n"
          "There is no encryption and no authentication without --key-file: whoever can send\n"
          "UDP to a server can use what it allows, and whoever is on the way can read and\n"
          "change what is carried. Use it so where the network is trusted, or for streams that\n"
          "protect themselves (TLS, ssh). UDP is not forwarded.\n"
          "\n"
          "Exit status: 0 all went well, 1 it did not, 2 the command line is wrong. See\n"
          "mrd_forward(1).\n",
          stdout);
}

/* ----------------------------------------------------------------------------- the command line */

static bool is_loopback(const struct address *a)
{
    struct in_addr number; /* a name may begin with 127, too */

    return a->is_unix || !a->host[0] || strcmp(a->host, "localhost") == 0 ||
           (strncmp(a->host, "127.", 4) == 0 && inet_aton(a->host, &number)) ||
           strcmp(a->host, "::1") == 0;
}

static enum options_result check(const struct options *o)
{
    for (uint32_t i = 0; i < o->num_forwards; i++) {
        if (o->forwards[i].is_socks && !is_loopback(&o->forwards[i].from))
            return wrong("-D %s: a proxy without authentication listens at loopback addresses only",
                         o->forwards[i].from.host);
    }
    if (o->mode == FORWARD_CONNECT && !o->num_forwards)
        return wrong("connect needs -L or -D%s", "");
    if (o->mode == FORWARD_SERVE && !o->num_allow)
        return wrong("serve needs --allow, or it would serve nothing%s", "");
    return OPTIONS_RUN;
}

/* Take the words behind the mode. */
static enum options_result take_words(struct options *o, int argc, char **argv)
{
    bool needs_server = o->mode == FORWARD_CONNECT || (o->mode == FORWARD_PIPE && !o->listen);
    int at = 0;
    struct address a;

    if (needs_server && at == argc)
        return wrong("which server?%s", o->mode == FORWARD_PIPE ? " (or --listen)" : "");
    if (needs_server)
        o->server = argv[at++];
    if (needs_server && o->mode == FORWARD_PIPE && at < argc) {
        if (!address_parse(&a, argv[at], false))
            return wrong("'%s': expected HOST:PORT or /PATH", argv[at]);
        o->target = argv[at++];
    }
    if (at < argc)
        return wrong("'%s' is too much", argv[at]);
    return check(o);
}

/* True: the mode that the first word names. */
static bool find_mode(const struct option_line *line, enum forward_mode *mode)
{
    for (unsigned i = 0; line->num_words && modes[i]; i++) {
        if (strcmp(line->words[0], modes[i]) == 0) {
            *mode = (enum forward_mode)i;
            return true;
        }
    }
    return false;
}

enum options_result options_parse(struct options *o, int argc, char **argv)
{
    char error[OPTION_ERROR_BYTES];
    struct option_line line = {.table = &table, .to = o, .error = error};

    memset(o, 0, sizeof(*o));
    option_defaults(&table, o);
    int rc = option_parse(&line, argc, argv);
    if (rc > 0)
        return (enum options_result)rc;
    if (rc < 0)
        return wrong("%s", error);
    if (!line.num_words)
        return wrong("what shall it do?%s", " serve, connect or pipe");
    if (!find_mode(&line, &o->mode))
        return wrong("'%s' is none of serve, connect, pipe", line.words[0]);
    if (option_check_mode(&line, o->mode))
        return wrong("%s", error);
    if (o->listen && option_given(&line, "bind"))
        return wrong("--listen says where it sends from, too: leave out --bind%s", "");
    o->hub.window = (uint32_t)(o->window_bytes / LINK_DATA_BYTES);
    o->hub.link.peer_timeout_ns = o->peer_timeout_s * UINT64_C(1000000000);
    if (o->mode == FORWARD_SERVE && !o->listen)
        (void)parse_local(o, "");
    return take_words(o, line.num_words - 1, line.words + 1);
}
