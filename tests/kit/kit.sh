#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# usage: kit.sh SAMPLE
# What kit.c makes of the tests of sample.c: which run, in which order, and what runs after them.

set -euo pipefail

sample=$1

fail()
{
    printf 'kit.sh: %s\n%s\n' "$1" "$out" >&2
    exit 1
}

# runs STATUS PATTERN...: the sample exits with it; what it prints is in $out.
runs()
{
    local status=0

    out=$("$sample" "${@:2}" 2>&1) || status=$?
    ((status == $1)) || fail "exit status $status, not $1, for: ${*:2}"
}

# says LINE...: what is printed beside cmocka's lines is this.
says()
{
    local got

    got=$(grep -E '^(setup|teardown|after|before|not|destroy)' <<<"$out" || true)
    [[ $got == "$(printf '%s\n' "$@")" ]] || fail "not what was to come: $*"
}

names='plain__passes plain__fails owner__passes owner__fails box__passes box__fails box__with
box__setup_fails box__teardown_fails plain__skips plain__last'
runs 0 --list
[[ $out == "$(tr ' ' '\n' <<<"$names")" ]] || fail 'names, in the order of their lines'
runs 0 --list 'plain__[ps]*'
[[ $out == $'plain__passes\nplain__skips' ]] || fail 'names that match'

runs 5
[[ $out == *'5 FAILED TEST(S)'* || $out == *'FAILED  ] 4 test(s)'* ]] || fail 'five fail'
[[ $(sed -n 's/^\[ RUN      \] //p' <<<"$out") == "$(tr ' ' '\n' <<<"$names")" ]] ||
    fail 'all run, in the order of their lines'

# A pattern, or several; a name is one. What matches nothing fails.
runs 0 plain__passes
says 'before all' before after 'after all'
runs 0 box__passes 'plain__l*'
says 'before all' before 'setup 0' 'teardown 1' before 'after all'
runs 1 plain
says
runs 1 --list nobody

# What fails is torn down, and the next begins with zeros.
runs 1 plain__fails
says 'before all' before after 'after all'
runs 1 'box__[pf]*'
says 'before all' before 'setup 0' 'teardown 1' before 'setup 0' 'teardown 9' 'after all'
runs 0 box__with
says 'before all' before 'setup 20' 'teardown 21' 'after all'

# What a test owns is destroyed after it, the last first; what a failed one owns is left.
runs 0 owner__passes
says 'before all' before 'destroy third' 'destroy first' 'after all'
runs 1 owner__fails plain__last
says 'before all' before before 'after all'

# What was not set up is not torn down; what runs after the test does, whatever fails.
runs 1 box__setup_fails plain__last
says 'before all' before 'setup 100' before 'after all'
runs 1 box__teardown_fails plain__last
says 'before all' before 'setup 49' 'teardown 50' after before 'after all'

runs 0 plain__skips
[[ $out == *'[  SKIPPED ] plain__skips'* ]] || fail 'skipped'
SAMPLE_ENDS=1 runs 77 plain__last
export SAMPLE_SKIPS=1
runs 77
says 'before all'
