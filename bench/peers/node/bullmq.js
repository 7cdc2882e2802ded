// SPDX-License-Identifier: PostgreSQL
//
// BullMQ on Redis over a unix socket, REDIS_SOCKET: addBulk for many jobs, a worker with a
// concurrency of 50 as its guide has it; finished jobs are removed. It has no claims of many jobs.
// One by one: a concurrency of the number of workers.

import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";

const NAME = "bench";
const BULK_CONCURRENCY = 50;
const options = { removeOnComplete: true, removeOnFail: true };

const connect = () => new Redis(process.env.REDIS_SOCKET, { maxRetriesPerRequest: null });

export async function setup() {
  const connection = connect();
  await connection.flushall();
  await connection.quit();
}

export async function produce() {
  const connection = connect();
  const queue = new Queue(NAME, { connection, defaultJobOptions: options });
  await queue.waitUntilReady();
  return {
    enqueue: (payloads) => queue.addBulk(payloads.map((data) => ({ name: NAME, data }))),
    enqueueOne: (data) => queue.add(NAME, data),
    async close() {
      await queue.close();
      await connection.quit();
    },
  };
}

export async function work(request, onJobs) {
  const connection = connect();
  const concurrency = request.batch === 1 ? request.workers : BULK_CONCURRENCY;
  const worker = new Worker(NAME, async () => { onJobs(1); }, { connection, concurrency });
  await worker.waitUntilReady();
  return {
    async stop() {
      await worker.close();
      await connection.quit();
    },
  };
}
