/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of faults: lines `TIME_US LINKS ACTION VALUE`, as mrd_sim_schedule() has them; '#' begins
 * a comment.
 */
#ifndef SIMX_FAULTS_H
#define SIMX_FAULTS_H

#include <stddef.h>

#include "mrd/sim.h"

/*
 * Schedule all of them. 0; -EINVAL with FILE:LINE and what is wrong; -errno: the file cannot be
 * read.
 */
int simx_faults_read(struct mrd_sim *sim, const char *path);

#endif
