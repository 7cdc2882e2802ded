// SPDX-License-Identifier: PostgreSQL
//
// graphile-worker as its page on performance has it: a local queue of the claim's size, completions
// in batches without a delay, 24 jobs at a time, and adds with addJobs, many in a call. One by
// one: no local queue, no batches, as many jobs at a time as there are workers.

import { Logger, makeWorkerUtils, run } from "graphile-worker";

const logger = new Logger(() => () => {});
const connectionString = "postgresql:///";

function preset(request) {
  const one = request.batch === 1;
  return {
    worker: {
      connectionString,
      logger,
      pollInterval: 2000,
      concurrentJobs: one ? request.workers : 24,
      maxPoolSize: one ? request.workers + 1 : 25,
      ...(one ? {} : { localQueue: { size: request.batch }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }),
    },
  };
}

export async function setup() {
  const utils = await makeWorkerUtils({ preset: preset({ batch: 500 }) });
  await utils.migrate();
  await utils.release();
}

export async function produce() {
  const utils = await makeWorkerUtils({ preset: preset({ batch: 500 }) });
  return {
    enqueue: (payloads) => utils.addJobs(payloads.map((payload) => ({ identifier: "bench", payload }))),
    enqueueOne: (payload) => utils.addJob("bench", payload),
    close: () => utils.release(),
  };
}

export async function work(request, onJobs) {
  const runner = await run({
    preset: preset(request),
    noHandleSignals: true,
    taskList: { bench: async () => onJobs(1) },
  });
  return { stop: () => runner.stop() };
}
