// SPDX-License-Identifier: PostgreSQL
"use strict";
