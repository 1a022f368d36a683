/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/movers/sim/sim_fault.h"

#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/backend.h"
#include "transport/movers/sim/sim_world.h"

enum action {
    RATE,
    DEGRADE,
    DELAY,
    JITTER,
    QUEUE,
    ECN,
    LOSS,
    CORRUPT,
    DUPLICATE,
    BURST,
    BLACKHOLE,
    DOWN,
    FLAP,
    HEAL
};

/* A scheduled change of the links that a pattern named, or of a host's address. */
struct mrd_sim_fault {
    uint32_t *wires; /* owned */
    uint32_t num_wires;
    uint32_t action; /* enum action */
    double value[3];
    uint32_t host, address, change; /* without wires; `change`: enum mrd_sim_address_change */
    uint64_t at_ns;
};

enum { NAME_BYTES = 64, VALUES_MAX = 3 };

#define NS_PER_US 1000.0

/* The actions: how many values each takes, and the greatest value allowed. */
static const struct {
    const char *name;
    unsigned values; /* 0: on or off; HEAL: none */
    double max;
    const char *form;
} actions[] = {
    [RATE] = {"rate", 1, 1e6, "GBPS above 0"},
    [DEGRADE] = {"degrade", 1, 1, "FACTOR above 0, at most 1"},
    [DELAY] = {"delay", 1, 1e9, "US"},
    [JITTER] = {"jitter", 1, 1e9, "US"},
    [QUEUE] = {"queue", 1, 1e12, "BYTES"},
    [ECN] = {"ecn", 2, 1e12, "MIN,MAX bytes"},
    [LOSS] = {"loss", 1, 1, "SHARE of 0 to 1"},
    [CORRUPT] = {"corrupt", 1, 1, "SHARE of 0 to 1"},
    [DUPLICATE] = {"duplicate", 1, 1, "SHARE of 0 to 1"},
    [BURST] = {"burst", 3, 1, "ENTER,LEAVE,LOSS shares of 0 to 1"},
    [BLACKHOLE] = {"blackhole", 0, 0, "on, ect or off"},
    [DOWN] = {"down", 0, 0, "on or off"},
    [FLAP] = {"flap", 2, 1e9, "PERIOD_US,DOWN_US"},
    [HEAL] = {"heal", 0, 0, ""},
};

/* -------------------------------------------------------------------------------------- reading */

static int find_action(const char *name)
{
    for (unsigned i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (strcmp(actions[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

static bool read_switch(const char *text, double *value)
{
    bool on = strcmp(text, "on") == 0;

    *value = on;
    return on || strcmp(text, "off") == 0;
}

static bool parse_values(const char *text, unsigned num, double max, double *value, locale_t point)
{
    for (unsigned i = 0; i < num; i++) {
        char *end;

        errno = 0;
        value[i] = strtod_l(text, &end, point);
        if (end == text || errno || !(value[i] >= 0 && value[i] <= max) ||
            *end != (i + 1 < num ? ',' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

/* Numbers have a point, whatever the locale of the program writes there. */
static bool read_values(const char *text, unsigned num, double max, double *value)
{
    locale_t point = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);

    if (!point)
        return false;

    bool good = parse_values(text, num, max, value, point);

    freelocale(point);
    return good;
}

static bool read_value(int action, const char *text, double *value)
{
    if (action == HEAL)
        return true;
    if (action == BLACKHOLE && strcmp(text, "ect") == 0) {
        value[0] = MRD_SIM_BLACKHOLE_ECT;
        return true;
    }
    if (actions[action].values == 0)
        return read_switch(text, &value[0]);
    if (!read_values(text, actions[action].values, actions[action].max, value))
        return false;
    if (action == RATE || action == DEGRADE)
        return value[0] > 0;
    if (action == ECN)
        return value[0] <= value[1];
    return action != FLAP || value[1] <= value[0];
}

/* ------------------------------------------------------------------------------------- matching */

/* The '-' between two nodes in a pattern, if any: not one in brackets, "[0-9]" or "[]-]". */
static char *find_dash(char *pattern)
{
    for (char *at = pattern; *at && *at != '>'; at++) {
        if (*at == '-')
            return at;
        if (*at != '[')
            continue;
        /* As fnmatch(3) reads them: a ']' that comes first is a member, an open '[' is itself. */
        size_t first = at[1] == '!' || at[1] == '^' ? 2 : 1;
        char *end = at[first] ? strchr(at + first + 1, ']') : NULL;

        if (end)
            at = end;
    }
    return NULL;
}

/* The name of the link in the other direction: "B>A.K" for "A>B.K". */
static void mirror(const char *name, char *mirrored, size_t len)
{
    const char *far_end = strchr(name, '>') + 1;
    int far_len = (int)strcspn(far_end, ".");

    snprintf(mirrored, len, "%.*s>%.*s%s", far_len, far_end, (int)(far_end - 1 - name), name,
             far_end + far_len);
}

static bool matches(const char *pattern, const char *name, bool either_way)
{
    char mirrored[NAME_BYTES];

    if (fnmatch(pattern, name, 0) == 0)
        return true;
    if (!either_way)
        return false;
    mirror(name, mirrored, sizeof(mirrored));
    return fnmatch(pattern, mirrored, 0) == 0;
}

/* Put all wires whose name matches `links` into the fault. 0, -ENOENT or -ENOMEM. */
static int find_wires(const struct mrd_sim *sim, const char *links, struct mrd_sim_fault *fault)
{
    const struct mrd_sim_fabric *fabric = &sim->fabric;
    char *pattern = strdup(links), name[NAME_BYTES];

    fault->wires = malloc(fabric->num_wires * sizeof(fault->wires[0]));
    if (!fault->wires || !pattern) {
        free(pattern);
        return -ENOMEM;
    }

    char *dash = find_dash(pattern);

    if (dash)
        *dash = '>';
    for (uint32_t i = 0; i < fabric->num_wires; i++) {
        if (mrd_sim_fabric_name(fabric, i, name, sizeof(name)) == 0 && matches(pattern, name, dash))
            fault->wires[fault->num_wires++] = i;
    }
    free(pattern);
    if (fault->num_wires == 0)
        return -ENOENT;

    uint32_t *less = realloc(fault->wires, fault->num_wires * sizeof(fault->wires[0]));

    if (less)
        fault->wires = less;
    return 0;
}

/* ------------------------------------------------------------------------------------- applying */

static uint32_t ppm(double share)
{
    return (uint32_t)(share * MRD_SIM_PPM + 0.5);
}

static uint64_t ns(double us)
{
    return (uint64_t)(us * NS_PER_US + 0.5);
}

/* At least 1 bit/s, as 0 stands for an infinite rate. */
static uint64_t rate(double bps)
{
    return bps < 1 ? 1 : (uint64_t)(bps + 0.5);
}

static void change(enum action action, const double *value, const struct mrd_sim_link *start,
                   struct mrd_sim_link *link)
{
    switch (action) {
    case RATE:
        link->rate_bps = rate(value[0] * 1e9);
        break;
    case DEGRADE:
        link->rate_bps = start->rate_bps ? rate(value[0] * (double)start->rate_bps) : 0;
        break;
    case DELAY:
        link->delay_ns = ns(value[0]);
        break;
    case JITTER:
        link->jitter_ns = ns(value[0]);
        break;
    case QUEUE:
        link->queue_bytes = (uint64_t)value[0];
        break;
    case ECN:
        link->ecn_min_bytes = (uint64_t)value[0];
        link->ecn_max_bytes = (uint64_t)value[1];
        break;
    case LOSS:
        link->loss_ppm = ppm(value[0]);
        break;
    case CORRUPT:
        link->corrupt_ppm = ppm(value[0]);
        break;
    case DUPLICATE:
        link->duplicate_ppm = ppm(value[0]);
        break;
    case BURST:
        link->burst_enter_ppm = ppm(value[0]);
        link->burst_leave_ppm = ppm(value[1]);
        link->burst_loss_ppm = ppm(value[2]);
        break;
    case BLACKHOLE:
        link->blackhole = (int)value[0];
        break;
    case DOWN:
        link->down = value[0] != 0;
        break;
    case FLAP:
        link->flap_period_ns = ns(value[0]);
        link->flap_down_ns = ns(value[1]);
        break;
    case HEAL:
        *link = *start;
        break;
    }
}

static void apply(struct mrd_sim *sim, const struct mrd_sim_fault *fault)
{
    if (!fault->wires) {
        mrd_sim_address_apply(sim, fault->host, fault->address,
                              (enum mrd_sim_address_change)fault->change);
        return;
    }
    for (uint32_t i = 0; i < fault->num_wires; i++) {
        uint32_t wire = fault->wires[i];
        struct mrd_sim_link link = sim->fabric.wires[wire].attr;

        change((enum action)fault->action, fault->value, mrd_sim_fabric_start(&sim->fabric, wire),
               &link);
        mrd_sim_fabric_set(&sim->fabric, wire, &link, mrd_sim_time(sim));
    }
}

uint64_t mrd_sim_faults_next_ns(const struct mrd_sim *sim)
{
    return sim->next_fault < sim->num_faults ? sim->faults[sim->next_fault]->at_ns : MRD_SIM_NEVER;
}

void mrd_sim_faults_apply(struct mrd_sim *sim)
{
    while (sim->next_fault < sim->num_faults && mrd_sim_faults_next_ns(sim) <= mrd_sim_time(sim))
        apply(sim, sim->faults[sim->next_fault++]);
}

/* ----------------------------------------------------------------------------------- scheduling */

static void fault_destroy(struct mrd_sim_fault *fault)
{
    free(fault->wires);
    free(fault);
}

void mrd_sim_faults_fini(struct mrd_sim *sim)
{
    for (uint32_t i = 0; i < sim->num_faults; i++)
        fault_destroy(sim->faults[i]);
    free(sim->faults);
    sim->faults = NULL;
    sim->num_faults = 0;
}

static int add(struct mrd_sim *sim, struct mrd_sim_fault *fault, uint64_t at_ns)
{
    struct mrd_sim_fault **faults =
        realloc(sim->faults, (sim->num_faults + 1) * sizeof(sim->faults[0]));

    if (!faults)
        return -ENOMEM;
    sim->faults = faults;
    fault->at_ns = at_ns;

    /* Behind those of the same time. A file has them in order: it costs no search. */
    uint32_t place = sim->num_faults++;

    for (; place > sim->next_fault && faults[place - 1]->at_ns > at_ns; place--)
        faults[place] = faults[place - 1];
    faults[place] = fault;
    return 0;
}

int mrd_sim_schedule(struct mrd_sim *sim, uint64_t at_ns, const char *links, const char *action,
                     const char *value)
{
    int number = find_action(action);
    struct mrd_sim_fault *fault;
    int ret;

    if (number < 0) {
        mrd_error_set("\"%s\" is not an action on links", action);
        return -EINVAL;
    }
    fault = calloc(1, sizeof(*fault));
    if (!fault) {
        ret = -ENOMEM;
        goto no_fault;
    }
    fault->action = (uint32_t)number;
    ret = -EINVAL;
    if (!read_value(number, value, fault->value)) {
        mrd_error_set("%s: expected %s, found \"%s\"", action, actions[number].form, value);
        goto fail;
    }
    ret = find_wires(sim, links, fault);
    if (ret == -ENOENT)
        mrd_error_set("no link is named \"%s\"", links);
    if (ret != 0)
        goto fail;
    if (at_ns > mrd_sim_time(sim)) {
        ret = add(sim, fault, at_ns);
        if (ret == 0)
            return 0;
    } else {
        apply(sim, fault);
    }
fail:
    fault_destroy(fault);
no_fault:
    if (ret == -ENOMEM)
        mrd_error_set("simulation: no memory for a fault");
    return ret;
}

int mrd_sim_change_address(struct mrd_sim *sim, uint64_t at_ns, uint32_t host, uint32_t id,
                           enum mrd_sim_address_change change)
{
    struct mrd_sim_fault *fault;

    assert(id < MRD_SIM_ADDRESSES_MAX);
    if (!mrd_sim_need_addresses(sim, host) || !(fault = calloc(1, sizeof(*fault))))
        return -ENOMEM;
    fault->host = host;
    fault->address = id;
    fault->change = change;
    if (at_ns > mrd_sim_time(sim)) {
        if (add(sim, fault, at_ns) == 0)
            return 0;
        fault_destroy(fault);
        return -ENOMEM;
    }
    apply(sim, fault);
    fault_destroy(fault);
    return 0;
}

int mrd_sim_move_address(struct mrd_sim *sim, uint64_t at_ns, uint32_t host, uint32_t id,
                         uint32_t new_id)
{
    int ret = mrd_sim_change_address(sim, at_ns, host, id, MRD_SIM_ADDRESS_LOSE);

    return ret ? ret : mrd_sim_change_address(sim, at_ns, host, new_id, MRD_SIM_ADDRESS_GET);
}
