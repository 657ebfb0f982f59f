// Runs under node with graphile-worker on NODE_PATH: makes its tables, works, submits. It does what common.py does.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");
const { Logger, makeWorkerUtils, run, runMigrations } = require("graphile-worker");

const spec = JSON.parse(process.argv[2]);
const logger = new Logger(() => () => {});
const now = () => process.hrtime.bigint();
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function handler() {
  let calls = 0;
  let descriptor;
  const write = (number) => {
    descriptor ??= fs.openSync(path.join(spec.notes, String(process.pid)), "a");
    fs.writeSync(descriptor, `${number}\n`);
  };
  const call = () => {
    calls += 1;
    if (calls % spec.every === 0) write(now());
  };
  const burn = () => {
    const start = process.cpuUsage();
    for (;;) {
      const spent = process.cpuUsage(start);
      if (spent.user + spent.system >= 1000) return;
    }
  };
  return {
    noop: async () => call(),
    sleep: async () => { call(); await pause(5); },
    cpu: async () => { call(); burn(); },
    read: async (payload) => { call(); void payload.text; },
    pick_up: async (payload) => write((now() - BigInt(payload.at_ns)) / 1000n),
    hold: async () => { call(); await new Promise(() => {}); },
  }[spec.handler];
}

async function work() {
  const options = spec.local_queue
    ? {
        localQueue: { size: spec.local_queue, refetchDelay: { durationMs: 10 } },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      }
    : {};
  await run({
    taskList: { work: handler() },
    logger,
    noHandleSignals: true,
    preset: {
      worker: {
        connectionString: spec.dsn,
        concurrentJobs: spec.concurrency,
        maxPoolSize: spec.pool,
        ...options,
      },
    },
  });
  process.stdout.write("ready\n");
  process.stdin.resume();
  process.stdin.on("end", () => process.exit(0));
}

async function submit() {
  const utils = await makeWorkerUtils({ connectionString: spec.dsn, maxPoolSize: 2, logger });
  const one = (payload) => utils.addJob("work", payload);
  const many = (payloads) => utils.addJobs(payloads.map((payload) => ({ identifier: "work", payload })));
  const text = "x".repeat(Math.max(0, spec.bytes - 12));
  await one({ text, at_ns: String(now()) });
  const lines = readline.createInterface({ input: process.stdin });
  const told = new Promise((resolve) => lines.once("line", resolve));
  process.stdout.write("ready\n");
  await told;
  const took = [];
  const start = now();
  const started = process.cpuUsage();
  const end = start + BigInt(Math.round(spec.seconds * 1e9));
  let done = 0;
  while (done < spec.count && now() < end) {
    if (spec.every_ms) {
      const from = spec.start_ns ? BigInt(spec.start_ns) : start;
      const moment = from + BigInt(Math.round((done + Math.random() / 4) * spec.every_ms * 1e6));
      const ahead = Number(moment - now()) / 1e6;
      if (ahead > 0) await pause(ahead);
    }
    const before = now();
    const size = spec.bulk ? Math.min(spec.bulk, spec.count - done) : 1;
    await (spec.bulk ? many(Array(size).fill({ text })) : one({ text, at_ns: String(before) }));
    took.push(Number(now() - before));
    done += size;
  }
  const seconds = Number(now() - start) / 1e9;
  const { user, system } = process.cpuUsage(started);
  took.sort((a, b) => a - b);
  const p50 = took[Math.floor(took.length / 2)] / 1000;
  process.stdout.write(`${JSON.stringify({ count: done, seconds, p50_us: p50, cpu_us: (user + system) / done })}\n`);
  await utils.release();
  process.exit(0);
}

const doing = { setup: () => runMigrations({ connectionString: spec.dsn, logger }), work, submit };
doing[spec.do]().catch((error) => {
  console.error(error);
  process.exit(1);
});
