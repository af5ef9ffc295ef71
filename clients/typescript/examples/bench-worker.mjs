// A worker whose handler does nothing, for measuring the server:
//     node bench-worker.mjs --url http://127.0.0.1:8000 --method noop --window 64 [--connection socket|poll|auto] [--lease-seconds 60]
// Answers each task with `{}`, prints nothing but errors, and stops on SIGTERM. The token comes from TASKLEDGER_TOKEN.
import { parseArgs } from "node:util";
import { jsonLog, Worker } from "taskledger/worker";

const { values } = parseArgs({
  options: {
    url: { type: "string", default: "http://127.0.0.1:8000" },
    method: { type: "string", multiple: true, default: ["noop"] },
    window: { type: "string", default: "64" },
    connection: { type: "string", default: "socket" },
    "lease-seconds": { type: "string", default: "60" },
    name: { type: "string" },
  },
});

const worker = new Worker({
  url: values.url,
  token: process.env.TASKLEDGER_TOKEN,
  name: values.name,
  concurrency: Number(values.window),
  connection: values.connection,
  leaseSeconds: Number(values["lease-seconds"]),
  log: jsonLog("error"),
});
const output = {};
for (const method of values.method) worker.method(method, () => output);
worker.stopOn("SIGTERM", "SIGINT");
await worker.run();
