# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts that draw pictures share.

# Begins a script that defines usage(), which is how it ends with fewer arguments, or more. The first two are $input and
# $out then. It goes to the root of the tree, and has a directory $scratch until it ends.
# plot_begin LEAST MOST ARGUMENT...
plot_begin()
{
    local least=$1 most=$2

    shift 2
    if (($# < least || $# > most)); then
        usage >&2
        exit 2
    fi
    # shellcheck disable=SC2034 # the script's
    input=$(realpath "$1") out=$(realpath "$2")
    cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
}

# Ends the script unless its tools are there, and FILE, which a run of MAKER leaves.
# plot_need FILE MAKER
plot_need()
{
    local tool

    for tool in gnuplot jq; do
        command -v $tool >/dev/null || { echo "${0##*/}: no $tool" >&2; exit 1; }
    done
    [[ -r $1 ]] || { echo "${0##*/}: there is no $1, as $2 leaves it" >&2; exit 1; }
}

# Draws the commands on standard input into a file, in the look of all pictures. gnuplot names curves without a title by
# the files that they are of: the directory of these is of one run only.
# plot_draw OUT.svg WIDTH HEIGHT
plot_draw()
{
    {
        echo 'load "tools/plot-style.gp"'
        echo "set terminal svg size $2,$3 @terminal_look"
        echo "set output '$1'"
        cat
    } | gnuplot -d -
    sed -i -e '1a <!-- SPDX-License-Identifier: BSD-2-Clause -->' -e "s,<title>\(['\"]\)[^'\"]*/,<title>\1," "$1"
}
