/* SPDX-License-Identifier: BSD-2-Clause */
/* --help, of all or of one experiment, and --set list. */
#include <string.h>

#include "tools/sim/options.h"

enum { COLUMNS = 79, TEXT_COLUMN = 27, NAME_COLUMNS = 13, TEXT_BYTES = 512 };

/* Of all experiments. */
static const struct simx_default notes[] = {
    {"cc", NULL, "nscc for mrd, none for the models"},
    {"jobs", NULL, "the processors"},
};

/* Each stands above the option of that name and those that follow. */
static const struct {
    const char *first, *heading;
} groups[] = {
    {"tm", "Traffic"},          {"rtt", "Narrow link"}, {"topo", "Fabric"},
    {"transport", "Transport"}, {"seed", "Runs"},       {"json", "Output"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---------------------------------------------------------------------------------------- lines */

/* Prints words from column `column`, where the cursor is; further lines are indented to it. */
static void print_words(FILE *out, int column, const char *text)
{
    int at = column;

    while (*text) {
        int len = (int)strcspn(text, " ");

        if (at > column && at + 1 + len > COLUMNS) {
            fprintf(out, "\n%*s", column, "");
            at = column;
        }
        at += fprintf(out, "%s%.*s", at > column ? " " : "", len, text);
        text += len;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

/* ------------------------------------------------------------------------------------- defaults */

/* Returns the default that --help shows, or NULL. `experiment` NULL: the common default. */
static const char *default_of(const struct simx_option *option,
                              const struct simx_experiment *experiment)
{
    bool is_named = option->of && option->of[0] != '!';
    const struct simx_default *own;

    if (!experiment && is_named) {
        experiment = simx_experiment_find(option->of);
        if (!experiment) /* several */
            return NULL;
    }
    own = experiment ? simx_default_find(experiment, option->name) : NULL;
    if (own)
        return own->note ? own->note : own->value;
    for (size_t i = 0; i < COUNT(notes); i++) {
        if (strcmp(notes[i].option, option->name) == 0)
            return notes[i].note;
    }
    return option->value;
}

/* -------------------------------------------------------------------------------------- options */

static void print_option(FILE *out, const struct simx_option *option,
                         const struct simx_experiment *experiment)
{
    char left[TEXT_COLUMN + 1], text[TEXT_BYTES];
    const char *value = default_of(option, experiment);
    bool is_named = !experiment && option->of && option->of[0] != '!';

    snprintf(text, sizeof(text), "%s%s%s%s%s%s", is_named ? option->of : "", is_named ? ": " : "",
             option->help, value ? " (" : "", value ? value : "", value ? ")" : "");
    snprintf(left, sizeof(left), "  --%s %s", option->name,
             option->argument ? option->argument : "");
    fprintf(out, "%-*s", TEXT_COLUMN, left);
    print_words(out, TEXT_COLUMN, text);
}

/* Prints the options of `experiment`, or all of them. */
static void print_options(FILE *out, const struct simx_experiment *experiment)
{
    const char *heading = NULL;

    for (const struct simx_option *option = simx_options; option->name; option++) {
        for (size_t group = 0; group < COUNT(groups); group++) {
            if (strcmp(groups[group].first, option->name) == 0)
                heading = groups[group].heading;
        }
        if (experiment && !simx_option_is_of(option, experiment))
            continue;
        if (heading)
            fprintf(out, "\n%s:\n", heading);
        heading = NULL;
        print_option(out, option, experiment);
    }
}

static void print_experiment(FILE *out, const struct simx_experiment *experiment)
{
    fprintf(out, "usage: mrd_sim %s [OPTION...]\n\n%s: ", experiment->name, experiment->name);
    print_words(out, (int)strlen(experiment->name) + 2, experiment->summary);
    print_words(out, 0, experiment->about);
    fputs("\nOptions with their defaults, with one dash or two.\n", out);
    print_options(out, experiment);
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
        print_words(out, NAME_COLUMNS + 2, simx_experiments[i]->summary);
    }
    fputs("\nOptions with their defaults, with one dash or two. Experiments have some\n"
          "defaults of their own: mrd_sim EXPERIMENT --help.\n",
          out);
    print_options(out, NULL);
}

void simx_options_help(FILE *out, const struct simx_experiment *experiment)
{
    if (experiment)
        print_experiment(out, experiment);
    else
        print_all(out);
    fputs("  -h, --help               this; after the name of an experiment, its own\n"
          "  --version\n"
          "\nExit status: 0 done, 1 flows that did not end or output that failed, 2 wrong\n"
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
