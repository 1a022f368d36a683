/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of mrd_sim: EXPERIMENT [OPTION...], each long option also with one dash, as
 * uet-htsim has them.
 *
 * Adding an option: a line in the table of options.c, what it sets in config.h, and its entry in
 * the man page.
 */
#ifndef SIMX_OPTIONS_H
#define SIMX_OPTIONS_H

#include <stdio.h>

#include "tools/sim/experiment.h"

enum simx_parsed {
    SIMX_PARSE_RUN,
    SIMX_PARSE_HELP, /* of *experiment, or of all: NULL */
    SIMX_PARSE_VERSION,
    SIMX_PARSE_LIST, /* --set list */
    SIMX_PARSE_ERROR,
};

/*
 * Fill `config` with the experiment's defaults and the options. SIMX_PARSE_ERROR: a sentence that
 * names the option and what was expected. getopt_long_only() may reorder argv.
 */
enum simx_parsed simx_options_parse(struct simx_config *config,
                                    const struct simx_experiment **experiment, int argc,
                                    char **argv);
/* Of all experiments (NULL), or of one: what it does, and the options that it has. */
void simx_options_help(FILE *out, const struct simx_experiment *experiment);
/* All that --set knows, with its default. */
void simx_options_constants(FILE *out);

enum simx_option_kind {
    SIMX_TEXT,
    SIMX_COUNT,
    SIMX_BYTES, /* a count with K, M or G */
    SIMX_REAL,
    SIMX_FLAG,
    SIMX_PAIR,
    SIMX_SET,
};

/* Where its value goes and what it may be. */
struct simx_option {
    const char *name;
    enum simx_option_kind kind;
    size_t at, bytes; /* in struct simx_config */
    double min, max;
    const char *argument;
    const char *value; /* default, as on a command line; NULL: none */
    const char *help;
    const char *of; /* experiments that have it, "a, b"; "!a, b": all but those; NULL: all */
};

/* All; the last has no name. */
extern const struct simx_option simx_options[];
bool simx_option_is_of(const struct simx_option *option, const struct simx_experiment *experiment);
/* What an experiment has in place of an option's default; NULL: nothing. */
const struct simx_default *simx_default_find(const struct simx_experiment *experiment,
                                             const char *option);
/* What an experiment starts with; NULL: what all do that have nothing of their own. */
void simx_options_defaults(struct simx_config *config, const struct simx_experiment *experiment);

#endif
