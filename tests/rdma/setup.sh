#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The virtual machine is made ready, where that can be done, before the tests that run in it.

# shellcheck source=tests/rdma/lib.sh
source "$(dirname "$0")/lib.sh"

"$root/tools/vmlab.sh" setup 2>&1 || skip 'no virtual machine, for the reason above'
