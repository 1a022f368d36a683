# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by tests of a program: a directory of their own, which goes with what still runs in the background, and fail(),
# which shows what the program last printed into the files out and err there.

scratch=$(mktemp -d)
trap 'jobs -p | xargs -r kill -9 2>/dev/null || true; rm -rf "$scratch"' EXIT
cd "$scratch"

fail()
{
    printf 'FAILED: %s\n' "$*" >&2
    cat out err >&2
    exit 1
}
