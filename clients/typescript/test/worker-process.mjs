// A worker as a process of its own: node worker-process.mjs URL NAME CONCURRENCY [CONNECTION]
// Method `work {ms}`: waits, whatever its signal says, and returns who did it. Prints a line for each beginning and end.
import { Worker } from "taskledger/worker";

const [url, name, concurrency, connection] = process.argv.slice(2);
const say = (line) => process.stdout.write(`${line}\n`);
const worker = new Worker({
  url,
  name,
  concurrency: Number(concurrency),
  connection,
  leaseSeconds: 5,
  log: ({ message, ...fields }) => say(`log ${message} ${JSON.stringify(fields)}`),
});
worker.method("work", async ({ ms }, ctx) => {
  say(`begin ${ctx.taskId} ${ctx.attempt}`);
  await new Promise((resolve) => setTimeout(resolve, ms));
  say(`end ${ctx.taskId} ${ctx.attempt} ${ctx.signal.aborted ? ctx.signal.reason.reason : "held"}`);
  return { by: name, attempt: ctx.attempt };
});
worker.stopOn("SIGTERM");
say(`ended ${await worker.run()}`);
