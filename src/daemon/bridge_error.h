// SPDX-License-Identifier: PostgreSQL
//
// Whose fault it is that a batch could not be applied.

#ifndef MILLRACE_DAEMON_BRIDGE_ERROR_H
#define MILLRACE_DAEMON_BRIDGE_ERROR_H

#include "base/err.h"

enum bridge_fault {
    FAULT_LOST,  // the connection: it may have been applied
    FAULT_TIMES, // nobody's, or the operator's: the same batch will go well later
    FAULT_ENTRY, // one of the entries': it will never go well
};

enum bridge_fault bridge_fault_of(const struct mr_error *err);

#endif
