-- SPDX-License-Identifier: PostgreSQL
-- What clients do with payload parts of a queue before they write them. compress: args, state and blob of more bytes are compressed; null: none. max_args:
-- the setting, which cannot be seen in compressed args. offload and blobs, where the queue has
-- the setting: state and blob of more bytes are written as objects whose names begin with blobs. pieces: whether the jobs of one enqueue_many may as well
-- come in several calls of one transaction; not where a depth_limit lets in a call whole, or a route takes a share of each call. A queue that is not there has the defaults. Instead of a queue, a lease: the policy of the queue that it is of; whether the lease is alive is not looked at.
create or replace function millrace.payload_policy(queue text,
  lease text = null)
returns jsonb
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
  select jsonb_build_object('compress', q.compress_above, 'max_args', coalesce(q.args_bytes, (select s.default_text::bigint from millrace.queue_setting s where s.setting_name = 'max_args')),
                            'pieces', q.depth_limit is null and q.route_queue is null)
         || case when q.offload_above is null then '{}' else jsonb_build_object('offload', q.offload_above, 'blobs', millrace.blob_home()) end
    from (values (1)) one
    left join millrace.queue_meant(queue, lease) q on true
$$;
comment on function millrace.payload_policy(text, text) is
  'what clients do with payload parts of a queue before they write them';
