#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ofi.sh PROVIDER TEST...: the tests of the provider for libfabric, over an RDMA device, which pins the memory it uses.

# shellcheck source=tests/rdma/lib.sh
source "$(dirname "$0")/lib.sh"

on_devices "$@"
export FI_PROVIDER_PATH
FI_PROVIDER_PATH=$(dirname "$1")

passes()
{
    FI_MRD_DEVICE=${devices[0]} timeout 200 "$1" >log 2>&1 || { grep -v ' OK \]' log; return 1; }
}

for program in "${@:2}"; do
    run_case "$(basename "$program")" passes "$program"
done
finish
