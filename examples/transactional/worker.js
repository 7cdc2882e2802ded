#!/usr/bin/env node
// SPDX-License-Identifier: PostgreSQL
//
// A worker with node-postgres whose effects and completions are one:
//
//   node worker.js QUEUE [--batch N] [--lease SECONDS] [--until-empty]
//
// Each job's row in the ledger is committed together with the job's completion, so there is exactly
// one row for each job that completed, whatever dies when. Connects with MILLRACE_DSN, else as
// libpq's environment says. If the connection is lost it ends: what was open is rolled back, and the
// jobs come again when their lease has expired.

import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import pg from "pg";

const LEASE_LOST = "MR001";
const POLL_MS = 100;

// What the application does for a job, in the transaction that completes it.
async function charge(client, job) {
  const { amount, sleep: seconds = 0 } = job.args;
  await client.query("insert into ledger (job_id, amount) values ($1, $2)", [job.id, amount]);
  await sleep(1000 * seconds);
  if (amount <= 0) throw new Error(`amount must be positive, not ${amount}`); // takes the row back, too
}

async function run(client, job) {
  await client.query("begin");
  try {
    await charge(client, job);
    await client.query("select millrace.complete($1, array[$2::bigint])", [job.lease, job.id]);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

// The transaction of the effect is gone; each of these is one of its own, as a single statement is.
async function fail(client, job, error) {
  await client.query("select millrace.fail($1, $2, $3)", [job.lease, job.id, String(error)]);
}

async function renew(client, lease) {
  await client.query("select millrace.heartbeat($1)", [lease]);
}

// Committed before the work begins: until then nobody else can claim.
async function claim(client, queue, batch, lease) {
  const { rows } = await client.query(
    `select lease, id, args,
            extract(epoch from lease_until - clock_timestamp())::float8 as seconds
       from millrace.claim($1, worker => $2, max_jobs => $3,
                           lease_for => make_interval(secs => $4))`,
    [queue, `worker.js ${process.pid}`, batch, lease]);
  return rows;
}

// The jobs of one lease. It is renewed between them, when a third of it has passed.
async function work(client, jobs) {
  let renewed = performance.now();
  for (const job of jobs) {
    if (performance.now() - renewed > (1000 * job.seconds) / 3) {
      renewed = performance.now();
      await renew(client, job.lease);
    }
    try {
      await run(client, job);
    } catch (error) { // a failure of one job is no reason to leave
      if (error.code === LEASE_LOST) throw error;
      await fail(client, job, error);
    }
  }
}

// node-postgres reads URLs; libpq, and so MILLRACE_DSN, also has host=... port=... dbname=...
function connection(dsn) {
  if (!dsn || /^postgres(ql)?:\/\//.test(dsn)) return { connectionString: dsn };
  const names = { host: "host", port: "port", user: "user", password: "password", dbname: "database" };
  const config = {};
  for (const [, word, quoted, plain] of dsn.matchAll(/(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(\S*))/g)) {
    if (!names[word]) throw new Error(`${word} in MILLRACE_DSN: use a URL`);
    config[names[word]] = (quoted ?? plain).replace(/\\(.)/g, "$1");
  }
  return config;
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      batch: { type: "string", default: "10" },
      lease: { type: "string" }, // the queue's, unless given
      "until-empty": { type: "boolean" },
    },
  });
  if (positionals.length !== 1) throw new Error("name one queue");
  const client = new pg.Client(connection(process.env.MILLRACE_DSN));
  client.on("error", leave);
  await client.connect();
  for (;;) {
    const jobs = await claim(client, positionals[0], values.batch, values.lease);
    if (!jobs.length && values["until-empty"]) break;
    if (!jobs.length) {
      await sleep(POLL_MS);
      continue;
    }
    try {
      await work(client, jobs);
    } catch (error) {
      if (error.code !== LEASE_LOST) throw error;
      // Rolled back already. The rest of these jobs is somebody else's by now.
      console.error(`worker.js: ${error.message}`);
    }
  }
  await client.end();
}

function leave(error) {
  console.error(`worker.js: ${error.message}`);
  process.exit(1);
}

main().catch(leave);
