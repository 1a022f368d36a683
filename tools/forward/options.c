/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/forward/pool.h"
#include "tools/forward/say.h"

static const char help_text[] =
    "Usage: mrd_forward serve [--listen ADDR[:PORT]] --allow HOST:PORT...\n"
    "       mrd_forward connect -L [BIND:]PORT:HOST:PORT... [-D [BIND:]PORT] SERVER[:PORT]\n"
    "       mrd_forward pipe SERVER[:PORT] [HOST:PORT]\n"
    "       mrd_forward pipe --listen ADDR[:PORT]\n"
    "Carries TCP connections, unix sockets and pipes over all paths of the network at once.\n"
    "\n"
    "serve, at the far end, connects to targets for others:\n"
    "  -a, --allow HOST:PORT      a target; '*' is any host, or any port; /PATH a unix socket\n"
    "  -t, --connect-timeout S    for a target to answer (10)\n"
    "connect, at the near end, listens:\n"
    "  -L, --forward SPEC         [BIND:]PORT:HOST:PORT, with a /PATH in place of either side; "
    "BIND:\n"
    "                             loopback, as without it, or an address, or '*'\n"
    "  -D, --socks [BIND:]PORT    SOCKS 5; no authentication, so loopback only\n"
    "pipe joins standard input and output to a target of a server, or to a listening pipe:\n"
    "  -r, --receive-only         do not read standard input\n"
    "\n"
    "  -l, --listen ADDR[:PORT]   serve, pipe: the address to be reached at (any; port 4793)\n"
    "  -b, --bind ADDR            connect, pipe: the address to send from (any)\n"
    "  -p, --paths N              UDP source ports to spray over (32)\n"
    "  -m, --memory BYTES         of all buffers, with K, M or G (1G); touched as needed\n"
    "  -w, --window BYTES         of a stream, at most (16M)\n"
    "  -n, --streams N            at a time, at most (16000)\n"
    "  -T, --peer-timeout S       a silent server or client is given up after so long (8)\n"
    "  -u, --user USER            become USER when all is open\n"
    "  -s, --stats                a line each second; SIGUSR1 makes a full report\n"
    "  -v, --verbose              a line for each connection\n"
    "  -h, --help  -V, --version\n"
    "\n"
    "There is no encryption and no authentication: whoever can send UDP to a server can use what "
    "it\n"
    "allows, and whoever is on the way can read and change what is carried. Use it where the "
    "network\n"
    "is trusted, or for streams that protect themselves (TLS, ssh). UDP is not forwarded.\n"
    "\n"
    "Exit status: 0 all went well, 1 it did not, 2 the command line is wrong. See "
    "mrd_forward(1).\n";

void options_help(void)
{
    fputs(help_text, stdout);
}

static enum options_result wrong(const char *format, const char *what)
{
    say(format, what);
    fputs("Try 'mrd_forward --help'.\n", stderr);
    return OPTIONS_WRONG;
}

/* Decimal, with K, M or G where `units`. */
static bool parse_number(const char *text, uint64_t low, uint64_t high, bool units, uint64_t *value)
{
    static const char letters[] = "KMG";
    char *rest;
    uint64_t unit = 1;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    unsigned long long v = strtoull(text, &rest, 10);
    const char *letter = *rest && units ? strchr(letters, *rest) : NULL;

    if (letter) {
        unit = UINT64_C(1) << (10 * (letter - letters + 1));
        rest++;
    }
    if (errno || *rest || v > UINT64_MAX / unit || v * unit < low || v * unit > high)
        return false;
    *value = v * unit;
    return true;
}

/* Takes ADDR, ADDR:PORT, :PORT, [ADDR]:PORT; "*" and "" are any. */
static bool parse_local(struct options *o, const char *text)
{
    const char *colon = strrchr(text, ':');
    uint64_t port = MRD_DEFAULT_PORT;
    size_t len = strlen(text);

    if (colon && (strchr(text, ':') == colon || (text[0] == '[' && colon[-1] == ']'))) {
        if (!parse_number(colon + 1, 1, UINT16_MAX, false, &port))
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
    o->hub.link.port = (uint16_t)port;
    o->hub.link.address = len && strcmp(o->address, "*") != 0 ? o->address : NULL;
    return true;
}

static enum options_result add_forward(struct options *o, const char *text, bool socks)
{
    struct forward *f = &o->forwards[o->num_forwards];

    if (o->num_forwards == OPTIONS_ROWS_MAX)
        return wrong("'%s' is one -L or -D too many", text);
    if (strlen(text) > 4 && strcmp(text + strlen(text) - 4, "/udp") == 0)
        return wrong("'%s': UDP is not forwarded, only streams are", text);
    if (!socks && !forward_parse(f, text))
        return wrong("-L '%s': expected [BIND:]PORT:HOST:PORT, or a /PATH for either side", text);
    if (socks && !forward_parse_socks(f, text))
        return wrong("-D '%s': expected [BIND:]PORT", text);
    o->num_forwards++;
    return OPTIONS_RUN;
}

static enum options_result add_allow(struct options *o, const char *text)
{
    if (o->num_allow == OPTIONS_ROWS_MAX)
        return wrong("'%s' is one --allow too many", text);
    if (!address_parse(&o->allow[o->num_allow], text, true))
        return wrong("--allow '%s': expected HOST:PORT, either may be '*', or /PATH", text);
    o->num_allow++;
    return OPTIONS_RUN;
}

static enum options_result take_number(struct options *o, int letter)
{
    static const struct {
        char letter;
        bool units;
        uint64_t low, high;
        const char *what;
    } rows[] = {
        {'t', false, 1, 50, "--connect-timeout is 1 to 50 seconds, not '%s'"},
        {'p', false, 1, 256, "--paths is 1 to 256, not '%s'"},
        {'m', true, 32 << 20, UINT64_C(1) << 40, "--memory is 32M to 1024G, not '%s'"},
        {'w', true, LINK_DATA_BYTES, (uint64_t)FLOW_WINDOW_MAX * LINK_DATA_BYTES,
         "--window is 64K to 32M, not '%s'"},
        {'n', false, 1, UINT16_MAX, "--streams is 1 to 65535, not '%s'"},
        {'T', false, 1, 3600, "--peer-timeout is 1 to 3600 seconds, not '%s'"},
    };
    uint64_t v = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].letter == letter &&
            !parse_number(optarg, rows[i].low, rows[i].high, rows[i].units, &v))
            return wrong(rows[i].what, optarg);
    }
    switch (letter) {
    case 't':
        o->connect_timeout_s = (uint32_t)v;
        break;
    case 'p':
        o->hub.link.paths = (uint32_t)v;
        break;
    case 'm':
        o->hub.link.memory_bytes = (size_t)v;
        break;
    case 'w':
        o->hub.window = (uint32_t)(v / LINK_DATA_BYTES);
        break;
    case 'n':
        o->hub.max_streams = (uint32_t)v;
        break;
    default:
        o->hub.link.peer_timeout_ns = v * UINT64_C(1000000000);
    }
    return OPTIONS_RUN;
}

static enum options_result take(struct options *o, int letter)
{
    switch (letter) {
    case 'a':
        return add_allow(o, optarg);
    case 'L':
        return add_forward(o, optarg, false);
    case 'D':
        return add_forward(o, optarg, true);
    case 'l':
        o->listen = true;
        return parse_local(o, optarg) ? OPTIONS_RUN
                                      : wrong("--listen '%s': expected ADDR[:PORT]", optarg);
    case 'b':
        if (!parse_local(o, optarg))
            return wrong("--bind '%s': expected ADDR", optarg);
        o->hub.link.port = 0;
        return OPTIONS_RUN;
    case 'r':
        o->receive_only = true;
        return OPTIONS_RUN;
    case 'u':
        o->user = optarg;
        return OPTIONS_RUN;
    case 's':
        o->stats = true;
        return OPTIONS_RUN;
    case 'v':
        o->verbose = true;
        return OPTIONS_RUN;
    case 'h':
        return OPTIONS_HELP;
    case 'V':
        return OPTIONS_VERSION;
    case '?':
    case ':':
        fputs("Try 'mrd_forward --help'.\n", stderr);
        return OPTIONS_WRONG; /* getopt_long() said it */
    default:
        return take_number(o, letter);
    }
}

static bool is_loopback(const struct address *a)
{
    return a->is_unix || !a->host[0] || strcmp(a->host, "localhost") == 0 ||
           strncmp(a->host, "127.", 4) == 0 || strcmp(a->host, "::1") == 0;
}

static enum options_result check(const struct options *o)
{
    for (uint32_t i = 0; i < o->num_forwards; i++) {
        if (o->forwards[i].is_socks && !is_loopback(&o->forwards[i].from))
            return wrong("-D %s: a proxy without authentication listens at loopback addresses only",
                         o->forwards[i].from.host);
    }
    if (o->mode != FORWARD_CONNECT && o->num_forwards)
        return wrong("-L and -D are of '%s'", "mrd_forward connect");
    if (o->mode != FORWARD_SERVE && o->num_allow)
        return wrong("--allow is of '%s'", "mrd_forward serve");
    if (o->mode == FORWARD_CONNECT && !o->num_forwards)
        return wrong("connect needs -L or -D%s", "");
    if (o->mode == FORWARD_SERVE && !o->num_allow)
        return wrong("serve needs --allow, or it would serve nothing%s", "");
    if (o->mode == FORWARD_CONNECT && o->listen)
        return wrong("--listen is of serve and pipe%s", "; --bind names the address to send from");
    if (o->receive_only && o->mode != FORWARD_PIPE)
        return wrong("--receive-only is of '%s'", "mrd_forward pipe");
    return OPTIONS_RUN;
}

static enum options_result take_arguments(struct options *o, int argc, char **argv)
{
    bool needs_server = o->mode == FORWARD_CONNECT || (o->mode == FORWARD_PIPE && !o->listen);
    int at = optind;
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

enum options_result options_parse(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        {"allow", required_argument, NULL, 'a'},
        {"connect-timeout", required_argument, NULL, 't'},
        {"forward", required_argument, NULL, 'L'},
        {"socks", required_argument, NULL, 'D'},
        {"receive-only", no_argument, NULL, 'r'},
        {"listen", required_argument, NULL, 'l'},
        {"bind", required_argument, NULL, 'b'},
        {"paths", required_argument, NULL, 'p'},
        {"memory", required_argument, NULL, 'm'},
        {"window", required_argument, NULL, 'w'},
        {"streams", required_argument, NULL, 'n'},
        {"peer-timeout", required_argument, NULL, 'T'},
        {"user", required_argument, NULL, 'u'},
        {"stats", no_argument, NULL, 's'},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
    };
    static const char *const modes[] = {"serve", "connect", "pipe"};
    int letter;

    memset(o, 0, sizeof(*o));
    o->hub = (struct hub_options){
        .link = {.port = 0, .peer_timeout_ns = UINT64_C(8000000000), .memory_bytes = 1 << 30},
        .max_streams = 16000,
        .window = FLOW_WINDOW_MAX / 2,
    };
    o->connect_timeout_s = 10;
    while ((letter = getopt_long(argc, argv, "a:t:L:D:rl:b:p:m:w:n:T:u:svhV", longs, NULL)) != -1) {
        enum options_result result = take(o, letter);

        if (result != OPTIONS_RUN)
            return result;
    }
    if (optind == argc)
        return wrong("what shall it do?%s", " serve, connect or pipe");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(argv[optind], modes[i]) == 0) {
            o->mode = (enum forward_mode)i;
            optind++;
            if (o->mode == FORWARD_SERVE && !o->listen)
                (void)parse_local(o, "");
            return take_arguments(o, argc, argv);
        }
    }
    return wrong("'%s' is none of serve, connect, pipe", argv[optind]);
}
