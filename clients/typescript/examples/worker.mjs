// A worker for two methods. Start it, and start `workflow.mjs` beside it:
//     node examples/worker.mjs [URL]
import { FinalError, Worker } from "taskledger/worker";

const worker = new Worker({
  url: process.argv[2] ?? process.env.TASKLEDGER_URL,
  token: process.env.TASKLEDGER_TOKEN,
  concurrency: 8,
});

worker.method("count_words", async ({ text }) => {
  // Trying again would not help: the task fails, whatever retries are left.
  if (typeof text !== "string") throw new FinalError("`text` must be a string");
  return { words: text.split(/\s+/).filter(Boolean).length };
});

worker.method("render", async ({ pages }, ctx) => {
  for (let page = 1; page <= pages; page++) {
    // Rejects when the task is cancelled; then nothing that this handler does counts any more.
    await pause(200, ctx.signal);
    ctx.progress(page / pages, `page ${page} of ${pages}`);
  }
  return { pages, attempt: ctx.attempt };
});

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const timer = setTimeout(() => (signal.removeEventListener("abort", ended), resolve()), ms);
    const ended = () => (clearTimeout(timer), reject(signal.reason));
    signal.addEventListener("abort", ended, { once: true });
  });
}

// The first Ctrl-C lets running tasks finish for 30 s, the second one gives them back.
worker.stopOn("SIGTERM", "SIGINT");
console.log("the worker has ended:", await worker.run());
