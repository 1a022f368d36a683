/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <wchar.h>

#include "mrd/mrd.h"
#include "tests/kit/kit.h"
#include "transport/backend.h"
#include "transport/error.h"

/* A caller sets the sentence first and returns -errno then: formatting must not change errno. */
TEST(mrd_error_set__leaves_errno)
{
    const wchar_t no_such_character[] = {0xd800, 0}; /* it cannot be converted: EILSEQ */

    errno = ENOSPC;
    mrd_error_set("%ls", no_such_character);
    assert_int_equal(errno, ENOSPC);
}

/* Without a sentence, that of the error itself; a long one is cut, not refused. */
TEST(mrd_error_copy__any_sentence)
{
    char wide[2000];

    mrd_error_copy(NULL, -ENOSPC);
    assert_string_equal(mrd_last_error(), strerror(ENOSPC));
    mrd_error_copy("", -ENOMEM);
    assert_string_equal(mrd_last_error(), strerror(ENOMEM));
    mrd_error_copy("as it is", -EINVAL);
    assert_string_equal(mrd_last_error(), "as it is");
    memset(wide, 'x', sizeof(wide) - 1);
    wide[sizeof(wide) - 1] = 0;
    mrd_error_copy(wide, -EINVAL);
    assert_in_range(strlen(mrd_last_error()), 100, sizeof(wide) - 2);
    assert_memory_equal(mrd_last_error(), wide, strlen(mrd_last_error()));
}
