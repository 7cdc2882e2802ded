-- SPDX-License-Identifier: PostgreSQL
create or replace view millrace.wheels as
select
    wheel.wheel_id,
    millrace.turns() as wheel_count
from millrace.wheel;
comment on view millrace.wheels is 'uses a function of api/';
