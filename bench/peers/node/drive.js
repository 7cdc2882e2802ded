// SPDX-License-Identifier: PostgreSQL
//
// Drives one contender that runs on Node once: node drive.js CONTENDER MODE [NAME=VALUE...]. The
// same modes, settings and answer as drive.c. Called by bench/peers/run.py, which brings the
// server in the PG* variables or REDIS_SOCKET.
//
// A contender is a file beside this one that exports
//   setup()                       makes what it needs in an empty database
//   produce()                     → { enqueue(payloads), enqueueOne(payload), close() }
//   work(request, onJobs)         → { stop() }: works until stopped and calls onJobs(count) when jobs
//                                 have run; stop() returns when their completion is written

import { setTimeout as sleep } from "node:timers/promises";
import { Worker, isMainThread, workerData } from "node:worker_threads";
import { randomBytes } from "node:crypto";

const PAYLOAD_BYTES = 200;
const POOL = 4096;
const WARM_UP_MS = 2000; // for the compiler too
const PICK_UP_LIMIT_MS = 30000;
const DRAIN_LIMIT_MS = 1800000;

const defaults = {
  jobs: 10000, chunk: 1000, batch: 500, workers: 1, producers: 1,
  slices: 1, seconds: 5, backlog: 20000, tick_jobs: 0, tick_ms: 10,
};

// ---- payloads: made once, used in turn ----

function makePayload(id) {
  const room = PAYLOAD_BYTES - JSON.stringify({ id, data: "" }).length;
  return { id, data: randomBytes(room).toString("hex").slice(0, room) };
}

const pool = Array.from({ length: POOL }, (_, i) => makePayload(i));
let turn = 0;

function payloads(count) {
  return Array.from({ length: count }, () => pool[turn++ % POOL]);
}

// ---- answers ----

function say(mode, request, jobs, seconds, more = {}) {
  const { batch, chunk, workers, producers } = request;
  const rate = seconds > 0 ? jobs / seconds : 0;
  const contender = request.contender;
  console.log(JSON.stringify({ mode, contender, jobs, batch, chunk, workers, producers, seconds, rate, ...more }));
}

const now = () => performance.now();

// ---- modes ----

async function setup(peer, request) {
  await peer.setup();
  say("setup", request, 0, 0);
}

async function enqueue(peer, request) {
  const producer = await peer.produce();
  const start = now();
  for (let left = request.jobs; left > 0; left -= request.chunk) {
    await producer.enqueue(payloads(Math.min(left, request.chunk)));
  }
  const seconds = (now() - start) / 1000;
  await producer.close();
  say("enqueue", request, request.jobs, seconds);
}

async function drain(peer, request) {
  const ends = [];
  let done = 0, reached;
  const all = new Promise((resolve) => (reached = resolve));
  const start = now();
  const worker = await peer.work(request, (count) => {
    done += count;
    while (ends.length < request.slices && done >= ((ends.length + 1) * request.jobs) / request.slices) {
      ends.push(now());
    }
    if (done >= request.jobs) reached(true);
  });
  if (!(await Promise.race([all, sleep(DRAIN_LIMIT_MS, false, { ref: false })]))) {
    throw new Error(`gave up after ${done} of ${request.jobs} jobs`);
  }
  await worker.stop();
  const seconds = (now() - start) / 1000;
  const slice_s = ends.map((end, i) => (end - (i ? ends[i - 1] : start)) / 1000);
  say("drain", request, done, seconds, { slice_s });
}

// The producer is a thread of its own, so that it does not share the workers' event loop. Shared:
// jobs queued, jobs done, stop.
async function steady(peer, request) {
  const shared = new BigInt64Array(new SharedArrayBuffer(24));
  const thread = new Worker(new URL(import.meta.url), { workerData: { request, shared }, argv: process.argv.slice(2) });
  const ended = new Promise((resolve, reject) => thread.once("exit", resolve).once("error", reject));
  const worker = await peer.work(request, (count) => {
    Atomics.add(shared, 1, BigInt(count));
  });
  await sleep(WARM_UP_MS);
  const start = now();
  const before = Atomics.load(shared, 1);
  await sleep(request.seconds * 1000);
  const done = Number(Atomics.load(shared, 1) - before);
  const seconds = (now() - start) / 1000;
  Atomics.store(shared, 2, 1n);
  await ended;
  await worker.stop();
  say("steady", request, done, seconds);
}

async function produceSteadily(peer, { request, shared }) {
  const producer = await peer.produce();
  while (!Atomics.load(shared, 2)) {
    if (Atomics.load(shared, 0) - Atomics.load(shared, 1) >= BigInt(request.backlog)) {
      await sleep(1);
      continue;
    }
    await producer.enqueue(payloads(request.chunk));
    Atomics.add(shared, 0, BigInt(request.chunk));
  }
  await producer.close();
}

// From the moment the producer knows of its commit to the handler's first line.
async function latency(peer, request) {
  const ms = [];
  let arrived = () => {};
  const worker = await peer.work({ ...request, batch: 1, workers: 1, idle: true }, () => {
    arrived(now());
  });
  const producer = await peer.produce();
  for (let i = 0; i < request.jobs; i++) {
    await sleep(20 + Math.random() * 60);
    const picked = new Promise((resolve) => (arrived = resolve));
    await producer.enqueueOne(payloads(1)[0]);
    const committed = now();
    const at = await Promise.race([picked, sleep(PICK_UP_LIMIT_MS, 0, { ref: false })]);
    if (!at) throw new Error("a job was not picked up");
    ms.push(Math.max(0, at - committed));
  }
  await worker.stop();
  await producer.close();
  ms.sort((a, b) => a - b);
  const p50_ms = ms[Math.floor(ms.length / 2)], p99_ms = ms[Math.floor((ms.length * 99) / 100)];
  say("latency", request, request.jobs, 0, { p50_ms, p99_ms });
}

const modes = { setup, enqueue, drain, steady, latency };
const contenders = ["graphile-worker", "pg-boss", "bullmq"];

function readRequest([contender, mode, ...settings]) {
  const request = { ...defaults, contender, mode };
  for (const setting of settings) {
    const [name, value] = setting.split("=");
    if (!(name in defaults) || !/^\d+$/.test(value)) throw new Error(`unknown setting: ${setting}`);
    request[name] = Number(value);
  }
  if (!contenders.includes(contender) || !modes[mode]) {
    throw new Error(`usage: drive.js ${contenders.join("|")} ${Object.keys(modes).join("|")} [NAME=VALUE...]`);
  }
  return request;
}

const request = readRequest(process.argv.slice(2));
const peer = await import(`./${request.contender}.js`);
if (isMainThread) {
  await modes[request.mode](peer, request);
  process.exit(0);
}
await produceSteadily(peer, workerData);
