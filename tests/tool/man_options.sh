#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# man_options.sh PROGRAM PAGE: the OPTIONS of the page are those of --help, long names and letters.

set -euo pipefail

# Words that begin with a dash, of standard input, one a line.
options()
{
    grep -oE '(^| )--?[A-Za-z0-9][A-Za-z0-9_-]*' | tr -d ' ' | sort -u
}

# The lines that follow .TP in the section, without markup: '\-' is '-', '\~' a space, fonts are gone.
tags()
{
    sed -E 's/\\-/-/g; s/\\~/ /g; s/\\f.//g; s/"//g' "$1" |
        awk '/^\.SH / { inside = $2 == "OPTIONS" } inside && tag { print } { tag = $0 == ".TP" }'
}

in_help=$("$1" --help | sed -nE 's/^  ((-., )?--[A-Za-z0-9_-]+).*/\1/p' | tr -d , | options)
in_page=$(tags "$2" | sed 's/^\.[A-Z]* //' | options)
(($(wc -l <<<"$in_help") > 15)) || { echo "FAILED: --help has too few options" >&2; exit 1; }
diff <(echo "$in_page") <(echo "$in_help") >&2 && exit 0
echo 'FAILED: options: < is in the page only, > in --help only' >&2
exit 1
