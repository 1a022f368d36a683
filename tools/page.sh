# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Pages whose figures are filled in: sourced by the scripts that measure them, in the root of the tree.
#
# A template is text with jq expressions between {{ and }}. They are made with page.jq and with definitions of the
# page's own. A claim that the figures do not support is an error, and then there is no page.

# The template as a jq program: its text is one string, what stands between {{ and }} an expression in it.
# page_program TEMPLATE DEFINITIONS
page_program()
{
    cat tools/page.jq "$2"
    jq -Rrs 'def quoted: tojson | .[1:-1];
        split("{{") | "\"" + (.[0] | quoted) + ([.[1:][] | split("}}")
            | if length == 2 then "\\(" + .[0] + ")" + (.[1] | quoted) else error("a {{ without its }}") end]
            | add) + "\""' "$1"
}

# The last change of what is measured in these directories. The page itself comes later, and other files do not matter.
page_commit()
{
    git log -1 --format=%h -- "$@" 2>/dev/null || true
}

# Collects what NAME.json (results, one after the other) and commands (lines of a name, a tab, a command) in DIRECTORY
# hold: into all and commands.object there, as page.jq has them.
# page_collect DIRECTORY
page_collect()
{
    (cd "$1" && jq -cn 'reduce inputs as $run ({}; .[input_filename | rtrimstr(".json")] += [$run])' ./*.json |
        jq -c 'with_entries(.key |= ltrimstr("./"))') >"$1/all"
    # Of several by one name the first.
    jq -Rcn 'reduce (inputs | split("\t")) as [$name, $command] ({}; .[$name] //= $command)' "$1/commands" \
        >"$1/commands.object"
}

# From the results in DIRECTORY.
# page_write TEMPLATE DEFINITIONS DIRECTORY PAGE JQ-ARGUMENT...
page_write()
{
    local directory=$3

    page_collect "$directory"
    page_program "$1" "$2" >"$directory/page.jq"
    jq -rn -f "$directory/page.jq" --slurpfile all "$directory/all" --slurpfile commands "$directory/commands.object" \
        "${@:5}" >"$directory/$4"
}
