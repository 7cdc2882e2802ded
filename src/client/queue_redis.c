// SPDX-License-Identifier: PostgreSQL
//
// The calls about jobs on Redis. See queue_ops.h.

#include "client/queue_ops.h"

const struct queue_ops queue_redis = {0};
