/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of a command line: one table, one row for each option.
 *
 * A row has what an option is called, where its value goes, what it may be, in which modes of the
 * program it means something, and what --help says of it. option_parse() takes the options and
 * leaves the other words; when these have told the mode, option_check_mode() refuses options of
 * other modes. All that fail leave a sentence in `error`, which has room for OPTION_ERROR_BYTES.
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    OPTION_ERROR_BYTES = 512,
    OPTION_ROWS_MAX = 64, /* of a table: struct option_line has a bit for each */
    OPTION_HELP_COLUMNS = 79,
};

enum option_type {
    OPTION_FLAG,   /* sets a bool; takes no argument */
    OPTION_TEXT,   /* a char[]: any text but none */
    OPTION_CHOICE, /* a char[]: one of the row's values */
    OPTION_COUNT,  /* an integer of 1 to 8 bytes */
    OPTION_BYTES,  /* the same, with K, M or G: powers of 1024 */
    OPTION_REAL,   /* a double */
    OPTION_PAIR,   /* double[2]: "0.2,0.8", the smaller first */
    OPTION_SHARE,  /* a uint32_t, parts per million: "0.01" or "1%", below 1 */
    OPTION_OTHER,  /* what `take` makes of it */
    OPTION_STOP,   /* the rest of the line is not looked at: option_parse() returns `low` */
};

struct option_value;

struct option_row {
    const char *name; /* without dashes; behind the last row there is one without a name */
    char letter;      /* 0: none */
    enum option_type type;
    size_t offset, bytes;      /* of the member that gets the value */
    long double low, high;     /* of a number, each possible */
    const char *argument;      /* what --help calls it; NULL: there is none */
    const char *help;          /* of OPTION_CHOICE, the values follow */
    const char *value;         /* the default, as on a command line; NULL: none, all bytes are 0 */
    uint32_t modes;            /* bits of the modes in which it means something; 0: all */
    const char *heading;       /* of the part of --help that begins here */
    const char *const *values; /* of OPTION_CHOICE; the last is NULL */
    const char *const *(*list_values)(void); /* the same, from a function */
    const char *expected;                    /* by OPTION_OTHER, if `take` says nothing else */
    /* 0; -EINVAL, with a sentence unless `expected` says it; above 0 as with OPTION_STOP. */
    int (*take)(const struct option_value *value);
};

/* What an option was given. */
struct option_value {
    const struct option_row *row;
    const char *text;
    void *to; /* the struct that has the members */
    char *error;
};

struct option_table {
    const struct option_row *rows;
    const char *const *modes; /* names of bits 0, 1, ...; the last is NULL */
    bool one_dash;            /* is enough for a long name, too */
    /* -EINVAL with a sentence about an unknown option, or 0: there is none. NULL: never. */
    int (*explain)(const char *name, int letter, char *error);
    /* The default that --help shows in a mode (below 0: in all). NULL: that of the row. */
    const char *(*shown_value)(const struct option_row *row, int mode);
};

/* A command line that is being read. */
struct option_line {
    const struct option_table *table;
    void *to; /* the struct that has the members */
    char *error;
    uint64_t given; /* bits of rows */
    int num_words;  /* what is no option, in argv's order */
    char **words;
};

/* For option_row.offset and .bytes. */
#define OPTION_MEMBER(type, member) offsetof(type, member), sizeof(((type *)NULL)->member)

/* Set every member that has a default. */
void option_defaults(const struct option_table *table, void *to);
/* 0; -EINVAL; above 0: what a row says that ends it. getopt_long() may reorder argv. */
int option_parse(struct option_line *line, int argc, char **argv);
/* 0, or -EINVAL: an option was given that means nothing in this mode. */
int option_check_mode(const struct option_line *line, unsigned mode);
/* Is an option of that name on the line? */
bool option_given(const struct option_line *line, const char *name);
/* Set the member of one row. 0, -EINVAL, or what `take` returned. */
int option_take(const struct option_row *row, const char *text, void *to, char *error);
/* The member of a row that is an integer or a flag; all bits of one that is negative. */
uint64_t option_whole(const struct option_row *row, const void *from);
void option_set_whole(const struct option_row *row, void *to, uint64_t value);
/* A number of 0 or more at the begin of *text, which is moved on: decimal, 0x10 or 1e6. */
bool option_scan(const char **text, long double *value);
/* Writes the sentence. Returns -EINVAL. */
int option_fail(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Print the rows of a mode, or with mode < 0 all rows, each with its modes if these are few. */
void option_help(FILE *out, const struct option_table *table, int mode);
/* Print words from column `column` on, where the cursor is; further lines are indented to it. */
void option_print_words(FILE *out, int column, const char *text);

#endif
