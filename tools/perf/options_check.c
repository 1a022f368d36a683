/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/options.h"

#include <errno.h>
#include <string.h>

#include "tools/perf/ibv_device.h"
#include "tools/perf/scale.h"
#include "tools/perf/transport.h"

/* Compare transports that can, for the same device; for state, those that keep anything for a peer. */
static void default_transports(struct perf_options *o)
{
    static const char *const compared[2][3] = {
        {"mrd-udp", "raw-udp", "tcp"}, /* the ceiling comes before the others */
        {"mrd-ibv", "rc", "raw-ud"},
    };
    static const char *const kept[2][2] = {{"mrd-udp", "tcp"}, {"mrd-ibv", "rc"}};
    bool rdma = perf_options_rdma_device(o->device);
    const char *const *names = o->compare ? compared[rdma] : kept[rdma];

    for (unsigned i = 0; i < (o->compare ? 3 : 2); i++) {
        const struct perf_transport_ops *ops = perf_transport_find(names[i]);
        bool able = (ops->requests || !perf_test_is_request(o->params.test)) &&
                    (ops->mutual || !o->params.bidirectional) &&
                    !(ops->raw && (o->params.events || o->params.threads > 1));
        if (o->state || able)
            strcpy(o->transports[o->num_transports++], names[i]);
    }
}

/* Those of perftest. */
static uint64_t default_size(enum perf_test test)
{
    if (perf_test_is_atomic(test))
        return PERF_ATOMIC_BYTES;
    return perf_test_is_lat(test) ? 2 : 65536;
}

void perf_options_default(struct option_line *line)
{
    struct perf_options *o = line->to;

    if (!option_given(line, "size"))
        o->params.size_bytes = o->scale ? SCALE_SIZE_DEFAULT : default_size(o->params.test);
    if (!option_given(line, "transport") && !o->compare && perf_options_rdma_device(o->device))
        strcpy(o->params.transport, "mrd-ibv");
    o->keygen.next_id = o->keygen.add && !option_given(line, "id");
    if ((o->compare || o->state) && o->num_transports == 0)
        default_transports(o);
}

static int check_roles(const struct option_line *line)
{
    const struct perf_options *o = line->to;

    if (o->local && o->host[0])
        return option_fail(line->error, "--local runs both ends here: leave out the host '%s'",
                           o->host);
    if (o->forever && (o->local || o->host[0]))
        return option_fail(line->error,
                           "--forever is for the server: leave out --local and the host");
    if (o->compare && !o->local && !o->host[0])
        return option_fail(
            line->error, "compare needs a host, or --local; the server is started as for any test");
    if (o->num_cpus == 2 && !o->local)
        return option_fail(line->error, "--bind with two CPUs is for --local; one end has one CPU");
    if (o->two_devices && !o->local)
        return option_fail(line->error,
                           "-d with two devices is for --local; one end has one device");
    if (perf_options_rdma_device(o->device) != perf_options_rdma_device(o->server_device))
        return option_fail(line->error,
                           "-d: both ends need devices of a kind, but %s and %s are not",
                           o->server_device, o->device);
    if (o->params.paths && o->num_source_ports && o->params.paths != o->num_source_ports)
        return option_fail(
            line->error,
            "--paths %u does not match the %u ports of --source-ports: leave out --paths",
            o->params.paths, o->num_source_ports);
    if (o->params.run_infinitely && !o->local && !o->host[0])
        return option_fail(line->error,
                           "--run_infinitely is for the client; a server needs --forever");
    if (o->params.run_infinitely && o->all_sizes)
        return option_fail(line->error, "--run_infinitely is one run: leave out -a");
    if (o->params.run_infinitely && (o->params.iterations || o->params.duration_s))
        return option_fail(line->error, "--run_infinitely has no end: leave out -n and -D");
    if (o->params.run_infinitely && (o->params.histogram || o->params.unsorted))
        return option_fail(line->error,
                           "--run_infinitely does not keep all latencies: leave out -H and -U");
    if (option_given(line, "size") && o->all_sizes)
        return option_fail(line->error, "-a runs all sizes: leave out -s");
    if (o->all_sizes && perf_test_is_atomic(o->params.test))
        return option_fail(line->error, "-a runs all sizes, and atomics have one: %d bytes",
                           PERF_ATOMIC_BYTES);
    return 0;
}

/* -d, -x, -i, --entropy and --source-ports of a single transport. */
static int check_device(const struct option_line *line)
{
    const struct perf_options *o = line->to;
    const char *name = o->params.transport;
    const struct perf_transport_ops *ops = perf_transport_find(name);
    bool client = o->local || o->host[0]; /* a server learns the transport from its client */

    if (ops->rdma && o->device[0] && !perf_options_rdma_device(o->device))
        return option_fail(line->error, "--transport %s needs an RDMA device, which -d %s is not",
                           name, o->device);
    if (!ops->rdma && perf_options_rdma_device(o->device))
        return option_fail(line->error,
                           "-d %s conflicts with --transport %s, which uses no RDMA device: leave "
                           "out one of the two, or use --transport mrd-ibv, rc or raw-ud",
                           o->device, name);
    if (ops->raw && !ops->rdma && o->device[0])
        return option_fail(line->error, "-d names a device of mrd or of RDMA: %s has none", name);
    if (client && !ops->rdma && (o->gid_index >= 0 || o->ib_port))
        return option_fail(line->error,
                           "-x and -i belong to RDMA devices: name one with -d, or leave them out");
    if (client && o->params.entropy[0] && strcmp(name, "mrd-ibv") != 0)
        return option_fail(line->error, "--entropy belongs to mrd-ibv, and not to %s", name);
    if (client && o->key_file[0] && !ops->manual_progress)
        return option_fail(line->error,
                           "--key-file seals packets of mrd: those of %s would be in the clear",
                           name);
    if (ops->rdma && o->num_source_ports)
        return option_fail(
            line->error, "--source-ports are of sockets: with %s use --paths and --entropy", name);
    return 0;
}

static int check_list(const struct option_line *line)
{
    const struct perf_options *o = line->to;
    struct perf_params params = o->params;
    unsigned num_rdma = 0;

    for (unsigned i = 0; i < o->num_transports; i++) {
        strcpy(params.transport, o->transports[i]);
        if (perf_params_check(&params, line->error))
            return -EINVAL;
        num_rdma += perf_transport_find(params.transport)->rdma;
        for (unsigned j = 0; j < i; j++) {
            if (strcmp(o->transports[i], o->transports[j]) == 0)
                return option_fail(line->error, "%s is named twice", o->transports[i]);
        }
    }
    if (num_rdma && o->device[0] && !perf_options_rdma_device(o->device))
        return option_fail(line->error,
                           "-d %s is no RDMA device, which transports of the list need", o->device);
    if (!num_rdma && (perf_options_rdma_device(o->device) || o->gid_index >= 0 || o->ib_port ||
                      o->params.entropy[0]))
        return option_fail(line->error,
                           "-d, -x, -i and --entropy speak to RDMA transports: the list has none");
    return 0;
}

static int check_state(const struct option_line *line)
{
    const struct perf_options *o = line->to;

    if (o->two_devices)
        return option_fail(line->error, "state is about this end alone: -d names one device");
    for (unsigned i = 0; i < o->num_transports; i++) {
        const struct perf_transport_ops *ops = perf_transport_find(o->transports[i]);
        if (ops && !ops->peer_state && !(ops->rdma && perf_ibv_missing()))
            return option_fail(line->error, "state: %s keeps nothing for a peer", ops->name);
    }
    return check_list(line);
}

static enum perf_mode mode_of(const struct perf_options *o)
{
    if (o->compare)
        return PERF_MODE_COMPARE;
    if (o->doctor)
        return PERF_MODE_DOCTOR;
    if (o->state)
        return PERF_MODE_STATE;
    if (o->keygen.asked)
        return PERF_MODE_KEYGEN;
    return o->scale ? PERF_MODE_SCALE : PERF_MODE_TEST;
}

static int check_keygen(const struct option_line *line)
{
    const struct perf_options *o = line->to;

    if (o->keygen.add && option_given(line, "cipher"))
        return option_fail(line->error, "--add keeps the cipher of the file: leave out --cipher");
    return 0;
}

int perf_options_check(const struct option_line *line)
{
    const struct perf_options *o = line->to;

    if (option_check_mode(line, mode_of(o)))
        return -EINVAL;
    if (o->keygen.asked)
        return check_keygen(line);
    if (o->doctor && perf_options_rdma_device(o->device))
        return option_fail(line->error, "doctor looks at sockets: leave out RDMA's -d");
    if (o->state)
        return check_state(line);
    if (o->scale)
        return perf_scale_check(line);
    if (check_roles(line))
        return -EINVAL;
    /* In a comparison each transport is checked with its own meaning of the parameters. */
    if (o->compare)
        return check_list(line);
    return perf_params_check(&o->params, line->error) ? -EINVAL : check_device(line);
}
