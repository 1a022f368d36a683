# SPDX-License-Identifier: BSD-2-Clause
#
# awk -v edits=FILE -v source=FILE -f apply.awk: prints the source with the edits of one mutation, whose format is in
# README.md here. Status 1, and why on stderr: one does not apply.
#
# Text is compared token by token, so that white space, line breaks and comments do not matter.

# Splits text into token[1..], at[1..] and end[1..]: where each begins, and where the next character after it is.
function scan(text, token, at, end,    rest, num, pos, len)
{
    pos = 1
    for (rest = text; rest != ""; rest = substr(rest, len + 1)) {
        if (match(rest, /^[ \t\n]+/))
            len = RLENGTH
        else if (substr(rest, 1, 2) == "/*")
            len = index(rest, "*/") ? index(rest, "*/") + 1 : length(idle)
        else if (substr(rest, 1, 2) == "//")
            len = index(rest, "\n") ? index(rest, "\n") : length(idle)
        else {
            len = 1
            if (match(rest, /^([A-Za-z0-9_]+|"([^"\\]|\\.)*"|'([^'\\]|\\.)*')/) ||
                match(rest, /^(\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|&&|\|\||[-+*\/%&|^<>=!]=)/))
                len = RLENGTH
            token[++num] = substr(rest, 1, len)
            at[num] = pos
            end[num] = pos + len
        }
        pos += len
    }
    return num
}

# Finds what is defined under a name: a function, a table, a struct. It begins and ends in the first column, as
# clang-format writes it. Returns how many there are; first and last become the characters of text where it lies.
function find(name,    line, num, i, j, pos, begin, head, found)
{
    num = split(text, line, "\n")
    pos = 1
    for (i = 1; i <= num; i++) {
        begin = pos
        pos += length(line[i]) + 1
        if (line[i] !~ /^[A-Za-z_]/)
            continue
        head = line[i]
        while (i < num && head !~ /[{;]/) {
            head = head "\n" line[++i]
            pos += length(line[i]) + 1
        }
        if (head ~ /[{]/ && head !~ /}.*;$/)
            while (i < num && line[i] !~ /^}/)
                pos += length(line[++i]) + 1
        else if (head !~ /[{=]/)
            continue # declared only
        if (head !~ "(^|[^A-Za-z0-9_])" name "(\\(|\\[| =| [{])")
            continue
        found++
        first = begin
        last = pos - 1
    }
    return found
}

function fail(why)
{
    printf "%s\n", why >"/dev/stderr"
    exit 1
}

# Replaces old by new, within what is defined under a name; in the whole file if there is none. Old may begin with "#2 ":
# the second of several.
function replace(name, old, new,    where, which, token, at, end, num, want, unused, len, i, j, times, begin, after)
{
    where = source (name ? ":" name : "")
    first = 1
    last = length(text)
    if (name && find(name) != 1)
        fail(find(name) ? where " is there twice" : "there is no " where)
    if (match(old, /^#[0-9]+ /)) {
        which = substr(old, 2, RLENGTH - 2) + 0
        old = substr(old, RLENGTH + 1)
    }
    num = scan(substr(text, first, last - first + 1), token, at, end)
    len = scan(old, want, unused, unused)
    if (!len)
        fail("an edit has no old text")
    for (i = 1; i + len - 1 <= num; i++) {
        for (j = 1; j <= len && token[i + j - 1] == want[j]; j++)
            ;
        if (j > len && (++times == which || !which)) {
            begin = at[i]
            after = end[i + len - 1]
        }
    }
    sub(/\n$/, "", old)
    gsub(/\n */, " ", old)
    if (which ? times < which : times != 1)
        fail(sprintf("`%s` is %d times in %s", old, times, where))
    sub(/\n$/, "", new)
    text = substr(text, 1, first + begin - 2) new substr(text, first + after - 1)
    edited++
}

function finish()
{
    if (old != "")
        replace(name, old, new)
    old = new = ""
}

BEGIN {
    while ((status = (getline line <source)) > 0)
        text = text line "\n"
    if (status < 0)
        fail("there is no " source)
    while ((getline line <edits) > 0) {
        if (line == "" || line ~ /^in / || (line ~ /^-/ && new != ""))
            finish()
        if (line ~ /^in /)
            name = line ~ /:/ ? substr(line, index(line, ":") + 1) : ""
        else if (line ~ /^-/)
            old = old substr(line, 3) "\n"
        else if (line ~ /^\+/)
            new = new substr(line, 3) "\n"
    }
    finish()
    if (!edited)
        fail("it changes nothing")
    printf "%s", text
}
