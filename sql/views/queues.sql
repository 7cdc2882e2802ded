-- SPDX-License-Identifier: PostgreSQL
-- The queues and their settings.
drop view if exists millrace.queues;
create view millrace.queues as
select q.queue_name as queue, q.paused_at is not null as paused, q.created_at,
       jsonb_build_object('lease', q.lease_time, 'parts', q.part_count, 'max_attempts', q.attempts_limit, 'poison_limit', q.poison_limit,
                          'retention', q.retention_time, 'dead_retention', q.dead_time, 'dead_max', q.dead_limit,
                          'dead_max_bytes', q.dead_bytes, 'max_args', q.args_bytes, 'max_state', q.state_bytes,
                          'max_blob', q.blob_bytes, 'warn_depth', q.warn_depth, 'critical_depth', q.critical_depth,
                          'durability', q.durability, 'depth_limit', q.depth_limit, 'overflow', q.overflow_queue,
                          'concurrency', q.concurrency_limit, 'rate', q.rate_limit, 'concurrency_per_key', q.key_limit,
                          'rate_per_tenant', q.tenant_rate, 'ordered', q.ordered, 'on_failure', q.on_failure, 'fair', q.fair,
                          'compress', q.compress_above, 'offload', q.offload_above, 'offload_delay', q.offload_after, 'offload_dead', q.offload_dead,
                          'transport', q.transport, 'route', q.route_queue, 'route_share', q.route_share, 'route_tenants', q.route_tenants) as settings
  from millrace.queue q
 where q.parent_id is null;
comment on view millrace.queues is 'the queues and their settings';
