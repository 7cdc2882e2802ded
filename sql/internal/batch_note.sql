-- SPDX-License-Identifier: PostgreSQL
-- What happens to batches, appended: members are added, members end, a batch is sealed. Nobody waits for anybody here but for a batch_seal that is
-- about to commit.

-- The batch of a number that must be there (MR003).
create or replace function millrace.batch_known(p_where text, p_batch bigint)
returns millrace.batch
language plpgsql
as $$
declare
  v_batch millrace.batch;
begin
  select b.*
    into v_batch
    from millrace.batch b
   where b.batch_id = p_batch;
  if not found then
    perform millrace.refuse_unknown(format('%sthere is no batch %s', p_where, coalesce(p_batch::text, 'null')),
      'Check the number that batch_begin() returned; batches are forgotten seven days after their end.');
  end if;
  return v_batch;
end $$;

-- Adds p_n members to a batch; refuses a batch that is sealed (22023). The lock, to the end of the transaction, is what batch_seal waits for.
create or replace function millrace.batch_enter(p_where text, p_batch bigint, p_n int)
returns void
language plpgsql
as $$
declare
  v_sealed timestamptz;
begin
  select b.sealed_at
    into v_sealed
    from millrace.batch b
   where b.batch_id = p_batch
     for key share;
  if not found then
    perform millrace.batch_known(p_where, p_batch);
  elsif v_sealed is not null then
    perform millrace.refuse(format('%sbatch %s is sealed', p_where, p_batch), 'Add all members before batch_seal(), or begin another batch.');
  end if;
  if p_n > 0 then
    insert into millrace.batch_note (batch_id, member_n)
    values (p_batch, p_n);
  end if;
end $$;

-- The ends of members, for jobs_ended: a note for each batch among them.
create or replace function millrace.batch_ends(p_hooks millrace.hook[], p_letters text)
returns void
language plpgsql
as $$
begin
  insert into millrace.batch_note (batch_id, completed_n, dead_n, cancelled_n, expired_n)
  select h.batch_id, count(*) filter (where h.letter = 'c'), count(*) filter (where h.letter = 'd'),
         count(*) filter (where h.letter in ('k', 'p')), count(*) filter (where h.letter = 'x')
    from (select h.batch_id, h.letter
            from unnest(p_hooks, string_to_array(p_letters, null)) h(job_id, lane, order_key, unique_name, batch_id, letter)
           where h.batch_id is not null) h
   where h.letter in ('c', 'd', 'k', 'x', 'p')
   group by h.batch_id;
end $$;
