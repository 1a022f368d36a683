/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrd_perf: bandwidth and latency between two hosts, for hands used to perftest. See mrd_perf(1).
 */
#include <signal.h>
#include <string.h>

#include "tools/perf/control.h"
#include "tools/perf/options.h"
#include "tools/perf/session.h"
#include "tools/perf/transport.h"

/* perftest's warning, which -F silences: a clock that changes during a run makes figures vary. */
static void warn_cpufreq(void)
{
    char governor[32] = "";
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "r");

    if (!f)
        return;
    if (fscanf(f, "%31s", governor) == 1 && strcmp(governor, "performance") != 0)
        fprintf(stderr,
                "mrd_perf: warning: CPU frequency governor is '%s', figures may wander (-F: no "
                "warning)\n",
                governor);
    fclose(f);
}

static int serve(const struct perf_options *o)
{
    char error[PERF_ERROR_BYTES];
    uint16_t port = o->port;
    int listener = perf_control_listen(o->bind_address, &port, o->ipv6, error);

    if (listener < 0)
        return perf_complain(PERF_EXIT_FAILED, "%s", error);
    fprintf(stderr, "mrd_perf: waiting for a client on port %u\n", port);
    return perf_server_session(o, listener);
}

static int state(const struct perf_options *o)
{
    char error[PERF_ERROR_BYTES];

    if (perf_transport_check_device(o, error))
        return perf_complain(PERF_EXIT_USAGE, "%s", error);
    return perf_state_run(o);
}

int main(int argc, char **argv)
{
    static struct perf_options o; /* large, and needed to the end */
    char error[PERF_ERROR_BYTES];

    switch (perf_options_parse(&o, argc, argv, error)) {
    case PERF_PARSE_RUN:
        break;
    case PERF_PARSE_HELP:
        perf_options_help(stdout);
        return PERF_EXIT_OK;
    case PERF_PARSE_VERSION:
        printf("mrd_perf %d.%d.%d\n", MRD_VERSION_MAJOR, MRD_VERSION_MINOR, MRD_VERSION_PATCH);
        return PERF_EXIT_OK;
    default:
        return perf_complain(PERF_EXIT_USAGE, "%s\nTry 'mrd_perf --help'.", error);
    }
    signal(SIGPIPE, SIG_IGN); /* the other end's death is told by the call that fails */
    if (!o.quiet_cpufreq)
        warn_cpufreq();
    if (o.state)
        return state(&o);
    if (o.local)
        return perf_local_run(&o);
    if (o.num_cpus && perf_local_pin(o.cpus[0], error))
        return perf_complain(PERF_EXIT_USAGE, "%s", error);
    return o.host[0] ? perf_client_session(&o, o.host, o.port) : serve(&o);
}
