/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/drive.h"

#include <string.h>

const struct simx_drive_ops *simx_drive_find(const char *transport)
{
    if (strcmp(transport, "mrd") == 0)
        return &simx_drive_mrd;
    if (strcmp(transport, "rc") == 0 || strcmp(transport, "irn") == 0)
        return &simx_drive_model;
    return NULL;
}
