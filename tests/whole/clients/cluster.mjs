// Tasks over several nodes: a worker at one, a client at another. Prints a line for each that has ended.

import { Client } from "../../../clients/typescript/dist/index.js";
import { Worker } from "../../../clients/typescript/dist/worker/index.js";

const AT_ONCE = 8;
const PATIENCE_MS = 120_000;

const [workerUrl, clientUrl, count] = process.argv.slice(2);
const worker = new Worker({ url: workerUrl, concurrency: AT_ONCE });
worker.method("double", (input) => ({ n: 2 * input.n }));
const running = worker.run();
const client = new Client({ url: clientUrl });

const numbers = Array.from({ length: Number(count) }, (_, n) => n);
async function some() {
  for (let n = numbers.shift(); n !== undefined; n = numbers.shift()) {
    const { run, task } = await client.executeAndWait(
      { name: `task ${n}`, schemas: { type: "remote", method: "double" }, inputs: { n } },
      { retryForMs: PATIENCE_MS },
    );
    console.log(`${n} ${run.state} ${task.result?.n}`);
  }
}

try {
  await Promise.all(Array.from({ length: AT_ONCE }, some));
} finally {
  await worker.stop();
  await running;
}
