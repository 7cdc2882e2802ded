-- SPDX-License-Identifier: PostgreSQL
-- So that none falls into a measurement by chance.
checkpoint;
