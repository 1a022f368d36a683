/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrd_perf: bandwidth and latency between two hosts, for hands used to perftest. See mrd_perf(1).
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "tools/perf/control.h"
#include "tools/perf/keygen.h"
#include "tools/perf/options.h"
#include "tools/perf/scale.h"
#include "tools/perf/session.h"
#include "tools/perf/transport.h"

/* perftest's warning, which -F silences: a clock that changes during a run makes figures vary. */
static void warn_cpufreq(void)
{
    static const char path[] = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    char governor[32];

    if (perf_read_line(path, governor, sizeof(governor)) && strcmp(governor, "performance") != 0)
        perf_complain(PERF_EXIT_OK,
                      "warning: CPU frequency governor is '%s', figures may wander (-F: no "
                      "warning)",
                      governor);
}

static int serve_clients(const struct perf_options *o)
{
    char error[PERF_ERROR_BYTES];
    uint16_t port = o->port;
    int listener = perf_control_listen(o->bind_address, &port, o->ipv6, error);

    if (listener < 0)
        return perf_complain(PERF_EXIT_FAILED, "%s", error);
    fprintf(stderr, "mrd_perf: waiting for a client on port %u\n", port);
    return perf_server_session(o, listener);
}

/* Ends after what was printed; whether it could be counts. */
static int finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return PERF_EXIT_OK;
    return perf_complain(PERF_EXIT_FAILED, "cannot write to stdout: %s", strerror(errno));
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
        return finish_output();
    case PERF_PARSE_VERSION:
        printf("mrd_perf %d.%d.%d\n", MRD_VERSION_MAJOR, MRD_VERSION_MINOR, MRD_VERSION_PATCH);
        return finish_output();
    default:
        return perf_complain(PERF_EXIT_USAGE, "%s\nTry 'mrd_perf --help'.", error);
    }
    if (o.keygen.asked)
        return perf_keygen_run(&o) ? PERF_EXIT_FAILED : finish_output();
    signal(SIGCHLD, SIG_DFL); /* if it is ignored, as some leave it, no end of a child is told */
    signal(SIGPIPE, SIG_IGN); /* the other end's death is told by the call that fails */
    if (!o.quiet_cpufreq)
        warn_cpufreq();
    if (perf_transport_check_device(o.device, error) ||
        perf_transport_check_device(o.server_device, error))
        return perf_complain(PERF_EXIT_USAGE, "%s", error);
    if (o.state)
        return perf_state_run(&o);
    if (o.scale)
        return perf_scale_run(&o);
    if (o.local)
        return perf_local_run(&o);
    if (o.num_cpus && perf_local_pin(o.cpus[0], error))
        return perf_complain(PERF_EXIT_USAGE, "%s", error);
    return o.host[0] ? perf_client_session(&o, o.host, o.port) : serve_clients(&o);
}
