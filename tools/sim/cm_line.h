/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines of a connection matrix, one by one: what each says, and that it is well formed.
 *
 * simx_cm_line() is called by simx_lines_read() for each, simx_cm_line_end() after the last one.
 * Triggers are still named by their ids then: cm.c looks at all lines together.
 */
#ifndef MRD_SIM_CM_LINE_H
#define MRD_SIM_CM_LINE_H

#include "tools/sim/cm.h"
#include "tools/sim/lines.h"

enum simx_cm_header {
    SIMX_CM_NODES,
    SIMX_CM_CONNECTIONS,
    SIMX_CM_TRIGGERS,
    SIMX_CM_FAILURES,
    SIMX_CM_HEADERS,
};

struct simx_cm_parser {
    struct simx_lines lines;
    struct simx_cm cm;
    uint64_t header[SIMX_CM_HEADERS];
    unsigned header_line[SIMX_CM_HEADERS]; /* 0: not seen */
    char hosts[SIMX_LINE_BYTES];           /* SRC->DST of the current line, if it had blanks */
};

/* 0, or -EINVAL or -ENOMEM with the sentence of mrd_last_error(). `arg`: a parser, at first zero. */
int simx_cm_line(struct simx_lines *lines, void *arg);
int simx_cm_line_end(struct simx_cm_parser *p);

#endif
