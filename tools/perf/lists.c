/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* strtoull() alone takes "-1", "" and " 7". */
static int take_number(const char **text, uint64_t *value)
{
    char *end;

    if (!isdigit((unsigned char)**text))
        return -EINVAL;
    errno = 0;
    unsigned long long v = strtoull(*text, &end, strncmp(*text, "0x", 2) == 0 ? 16 : 10);
    if (errno)
        return -EINVAL;
    *text = end;
    *value = v;
    return 0;
}

int perf_parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
    uint64_t v;

    if (take_number(&text, &v) || *text != '\0' || v < low || v > high)
        return -EINVAL;
    *value = v;
    return 0;
}

int perf_parse_size(const char *text, uint64_t *bytes)
{
    uint64_t v;
    unsigned shift = 0;

    if (take_number(&text, &v))
        return -EINVAL;
    if (*text != '\0') {
        static const char suffixes[] = "kmg";
        const char *suffix = strchr(suffixes, tolower((unsigned char)*text));
        if (!suffix || text[1] != '\0')
            return -EINVAL;
        shift = 10 * (1 + (unsigned)(suffix - suffixes));
    }
    if (v > (UINT64_MAX >> shift))
        return -EINVAL;
    *bytes = v << shift;
    return 0;
}

int perf_parse_share(const char *text, uint32_t *ppm)
{
    char *end;

    if (!isdigit((unsigned char)*text) && *text != '.')
        return -EINVAL;
    double share = strtod(text, &end);
    if (strcmp(end, "%") == 0)
        share /= 100;
    else if (*end != '\0')
        return -EINVAL;
    if (!(share >= 0 && share < 1))
        return -EINVAL;
    *ppm = (uint32_t)lround(share * 1e6);
    return *ppm < 1000000 ? 0 : -EINVAL;
}

static bool is_in(const uint16_t *list, unsigned count, uint64_t value)
{
    for (unsigned i = 0; i < count; i++) {
        if (list[i] == value)
            return true;
    }
    return false;
}

int perf_parse_list(const char *text, const struct perf_list_rules *rules, uint16_t *list,
                    unsigned *count)
{
    uint64_t first, last;
    unsigned n = 0;

    for (;; text++) {
        if (take_number(&text, &first))
            return -EINVAL;
        last = first;
        if (rules->ranges && *text == '-') {
            text++;
            if (take_number(&text, &last))
                return -EINVAL;
        }
        if (first < rules->low || last > rules->high || first > last)
            return -EINVAL;
        for (; first <= last; first++) {
            if (n == rules->most || (rules->ranges && is_in(list, n, first)))
                return -EINVAL;
            list[n++] = (uint16_t)first;
        }
        if (*text != ',')
            break;
    }
    if (*text != '\0')
        return -EINVAL;
    *count = n;
    return 0;
}

int perf_parse_names(const char *text, char names[PERF_TRANSPORTS_MAX][PERF_NAME_BYTES],
                     unsigned *count)
{
    unsigned n = 0;

    for (;;) {
        size_t len = strcspn(text, ",");
        if (n == PERF_TRANSPORTS_MAX || len == 0 || len >= PERF_NAME_BYTES)
            return -EINVAL;
        memcpy(names[n], text, len);
        names[n++][len] = '\0';
        if (text[len] == '\0')
            break;
        text += len + 1;
    }
    *count = n;
    return 0;
}
