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

#include "tools/common/options.h"
#include "tools/sim/experiment.h"

enum simx_parsed {
    SIMX_PARSE_RUN = 0,
    SIMX_PARSE_HELP, /* of *experiment, or of all: NULL */
    SIMX_PARSE_VERSION,
    SIMX_PARSE_LIST, /* --set list */
    SIMX_PARSE_ERROR,
};

/*
 * Fill `config` with the experiment's defaults and the options. SIMX_PARSE_ERROR: a sentence that
 * names the option and what was expected. argv may be reordered.
 */
enum simx_parsed simx_options_parse(struct simx_config *config,
                                    const struct simx_experiment **experiment, int argc,
                                    char **argv);
/* Of all experiments (NULL), or of one: what it does, and the options that it has. */
void simx_options_help(FILE *out, const struct simx_experiment *experiment);
/* All that --set knows, with its default. */
void simx_options_constants(FILE *out);

/* All options, with a mode for each experiment: its place in simx_experiments. */
extern const struct option_table simx_options;
/* What an experiment starts with; NULL: what all do that have nothing of their own. */
void simx_options_defaults(struct simx_config *config, const struct simx_experiment *experiment);

#endif
