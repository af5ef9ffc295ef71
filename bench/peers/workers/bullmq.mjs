// A BullMQ worker whose jobs do nothing: node bullmq.mjs PORT QUEUE CONCURRENCY
import { Worker } from "bullmq";

const [port, queue, concurrency] = process.argv.slice(2);
const output = {};
const worker = new Worker(queue, async () => output, {
  connection: { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null },
  concurrency: Number(concurrency),
});
worker.on("error", (error) => console.error(error));
process.on("SIGTERM", async () => {
  await worker.close();
  process.exit(0);
});
