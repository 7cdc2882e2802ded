-- SPDX-License-Identifier: PostgreSQL
-- The bare wake-up that a pick-up is compared with.
notify millrace_bench;
