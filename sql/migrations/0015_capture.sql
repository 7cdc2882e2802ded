-- SPDX-License-Identifier: PostgreSQL
-- Capture has no tables here. What a capture is stands in the catalogue: triggers on the captured table, whose argument holds its settings, a function and
-- two sequences beside the table, all of the table's owner. So it goes with a dump, and with the table.

-- Functions that get other parameters.
drop function if exists millrace.enqueue_many_at(timestamptz, text, jsonb[], text, int, timestamptz, bytea[], bytea[]);
drop function if exists millrace.unique_replace(timestamptz, bigint, jsonb, timestamptz);
