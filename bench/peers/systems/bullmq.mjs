// BullMQ on a Redis of its own that syncs each write before it is answered.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { FlowProducer, Queue, QueueEvents } from "bullmq";
import { freePort, start } from "../processes.mjs";

const WORKER = fileURLToPath(new URL("../workers/bullmq.mjs", import.meta.url));
const { version } = createRequire(import.meta.url)("bullmq/package.json");
const QUEUE = "noop";
const DATA = { k: 1 };

export async function bullmq({ folder, redis, window }) {
  const port = await freePort();
  const server = start(redis, [
    "--port", String(port), "--bind", "127.0.0.1", "--dir", folder,
    "--appendonly", "yes", "--appendfsync", "always", "--save", "",
  ]);
  const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
  const queue = new Queue(QUEUE, { connection });
  // Until the server listens, and while its clients are closed.
  queue.on("error", () => {});
  await server.ready(async () => (await (await queue.client).ping()) === "PONG");
  const events = new QueueEvents(QUEUE, { connection });
  // Each call in flight listens for its end.
  events.setMaxListeners(0);
  queue.setMaxListeners(0);
  await events.waitUntilReady();
  const flows = new FlowProducer({ connection });
  const worker = start(process.execPath, [WORKER, String(port), QUEUE, String(window)]);
  await worker.ready(async () => (await queue.getWorkersCount()) > 0);
  const ended = (job) => job.waitUntilFinished(events);
  const job = (name, children) => ({ name, queueName: QUEUE, data: DATA, children });

  return {
    version: `BullMQ ${version}, ${redisVersion(redis)}`,
    call: async () => ended(await queue.add("one", DATA)),
    // A job waits for its children, so the last of the chain is the outermost.
    async chain(length) {
      let chain = job("t0", []);
      for (let k = 1; k < length; k++) chain = job(`t${k}`, [chain]);
      return ended((await flows.add(chain)).job);
    },
    async fan(width) {
      const all = Array.from({ length: width }, (_, k) => job(`t${k}`, []));
      return ended((await flows.add(job("last", all))).job);
    },
    async end() {
      await worker.end();
      await Promise.all([flows.close(), events.close(), queue.close()]);
      await server.end();
    },
  };
}

function redisVersion(redis) {
  const said = execFileSync(redis, ["--version"], { encoding: "utf8" });
  return `Redis ${/v=([\d.]+)/.exec(said)?.[1] ?? "of an unknown version"}`;
}
