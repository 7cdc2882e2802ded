// SPDX-License-Identifier: PostgreSQL
//
// Options structs that begin with their size: see sized.h.

#include "client/sized.h"

#include <string.h>

int sized_read(void *to, size_t known, const void *from, const char *init, struct mr_error *err)
{
    size_t size;

    memcpy(&size, from, sizeof(size));
    if (size < sizeof(size)) {
        mr_error_set(err, MR_EUSAGE, "the size of an options struct is not set: %zu", size);
        mr_error_hint(err, "Initialize it with %s.", init);
        return MR_EUSAGE;
    }
    if (size > known) {
        mr_error_set(err, MR_EUSAGE, "an options struct is larger than this library knows: %zu",
                     size);
        mr_error_hint(err,
                      "Initialize it with %s; if it is, the program was built with the header of "
                      "a newer version: upgrade libmillrace, which is %s.",
                      init, MR_VERSION);
        return MR_EUSAGE;
    }
    memcpy(to, from, size);
    return 0;
}
