-- SPDX-License-Identifier: PostgreSQL
--
-- The functions that are installed: no row or one.
select
    schema_functions.checksum,
    schema_functions.program_version
from millrace.schema_functions;
