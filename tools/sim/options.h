/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of mrd_sim: EXPERIMENT [OPTION...], each long option also with one dash, as
 * uet-htsim has them.
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
                                    char **argv, char *error, size_t len);
/* Of all experiments (NULL), or of one: what it does, and the options that it has. */
void simx_options_help(FILE *out, const struct simx_experiment *experiment);
/* All that --set knows, with its default. */
void simx_options_constants(FILE *out);

#endif
