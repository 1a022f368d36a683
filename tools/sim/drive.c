/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/drive.h"

#include <string.h>

const struct simx_drive_ops *simx_drive_find(const char *transport)
{
    return strcmp(transport, "mrd") == 0 ? &simx_drive_mrd : NULL;
}
