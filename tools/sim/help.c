/* SPDX-License-Identifier: BSD-2-Clause */
/* --help, of all or of one experiment, and --set list. */
#include <string.h>

#include "tools/sim/options.h"

enum { NAME_COLUMNS = 13 };

static int index_of(const struct simx_experiment *experiment)
{
    int i = 0;

    while (simx_experiments[i] != experiment)
        i++;
    return i;
}

static void print_experiment(FILE *out, const struct simx_experiment *experiment)
{
    fprintf(out, "usage: mrd_sim %s [OPTION...]\n\n%s: ", experiment->name, experiment->name);
    option_print_words(out, (int)strlen(experiment->name) + 2, experiment->summary);
    option_print_words(out, 0, experiment->about);
    fputs("\nOptions with their defaults, with one dash or two.\n", out);
    option_help(out, &simx_options, index_of(experiment));
}

static void print_all(FILE *out)
{
    fputs("usage: mrd_sim EXPERIMENT [OPTION...]\n"
          "       mrd_sim EXPERIMENT --help\n"
          "       mrd_sim --help | --version | --set list\n"
          "\nExperiments:\n",
          out);
    for (unsigned i = 0; simx_experiments[i]; i++) {
        fprintf(out, "  %-*s", NAME_COLUMNS, simx_experiments[i]->name);
        option_print_words(out, NAME_COLUMNS + 2, simx_experiments[i]->summary);
    }
    fputs("\nOptions with their defaults, with one dash or two. Experiments have some\n"
          "defaults of their own: mrd_sim EXPERIMENT --help.\n",
          out);
    option_help(out, &simx_options, -1);
}

void simx_options_help(FILE *out, const struct simx_experiment *experiment)
{
    if (experiment)
        print_experiment(out, experiment);
    else
        print_all(out);
    fputs("\nExit status: 0 done, 1 flows that did not end or output that failed, 2 wrong\n"
          "options or files, 130 by SIGINT. See mrd_sim(1).\n",
          out);
}

static void list(FILE *out, const struct mrd_tune_entry *entries, unsigned num)
{
    for (unsigned i = 0; i < num; i++)
        fprintf(out, "  %-26s %-10.10g %s\n", entries[i].name, entries[i].value_default,
                entries[i].help);
}

void simx_options_constants(FILE *out)
{
    unsigned num;
    const struct mrd_tune_entry *entries = mrd_tune_entries(&num);

    fputs("Constants of mrd's policies, for --set NAME=VALUE:\n", out);
    list(out, entries, num);
    entries = model_tune_entries(&num);
    fputs("Of the models rc and irn:\n", out);
    list(out, entries, num);
}
