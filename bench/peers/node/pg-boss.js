// SPDX-License-Identifier: PostgreSQL
//
// pg-boss: insert() for many jobs, fetch() with batchSize and complete() with many ids, a loop for
// each worker. Its upkeep and schedules are off while it is measured. An idle worker is woken by
// NOTIFY (useListenNotify, and notify on the queue).

import { PgBoss } from "pg-boss";

const QUEUE = "bench";

async function start(options = {}) {
  const boss = new PgBoss({
    connectionString: "postgresql:///",
    supervise: false,
    schedule: false,
    max: 20,
    ...options,
  });
  boss.on("error", (error) => {
    throw error;
  });
  await boss.start();
  return boss;
}

const stop = (boss) => boss.stop({ graceful: false, close: true });

export async function setup() {
  const boss = await start();
  await boss.createQueue(QUEUE, { notify: true });
  await stop(boss);
}

export async function produce() {
  const boss = await start({ migrate: false });
  return {
    enqueue: (payloads) => boss.insert(QUEUE, payloads.map((data) => ({ data }))),
    enqueueOne: (data) => boss.send(QUEUE, data),
    close: () => stop(boss),
  };
}

async function workWhenWoken(onJobs) {
  const boss = await start({ useListenNotify: true, migrate: false });
  await boss.work(QUEUE, { batchSize: 1, pollingIntervalSeconds: 0.5 }, async () => onJobs(1));
  return { stop: () => stop(boss) };
}

export async function work(request, onJobs) {
  if (request.idle) return workWhenWoken(onJobs);
  const boss = await start({ migrate: false });
  let stopped = false;
  let left = request.mode === "drain" ? request.jobs : Infinity;

  async function loop() {
    while (!stopped && left > 0) {
      const jobs = await boss.fetch(QUEUE, { batchSize: request.batch });
      if (jobs.length === 0) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        continue;
      }
      left -= jobs.length;
      await boss.complete(QUEUE, jobs.map((job) => job.id));
      onJobs(jobs.length);
    }
  }

  const loops = Array.from({ length: request.workers }, loop);
  return {
    async stop() {
      stopped = true;
      await Promise.all(loops);
      await stop(boss);
    },
  };
}
