// Does the step `text.chart`: reads the results of the steps that it waited for, and draws them.
import { jsonLog, Worker } from "taskledger/worker";

interface Count {
  words: number;
  by_length: Record<string, number>;
}

const worker = new Worker({
  url: process.env.TASKLEDGER_URL,
  token: process.env.TASKLEDGER_TOKEN,
  name: "typescript",
  concurrency: 4,
  log: jsonLog("warn"),
});

worker.method("text.chart", async ({ width }: { width: number }, ctx) => {
  const steps = await Promise.all(ctx.task.dependencies.map(({ id }) => worker.client.get(id, { signal: ctx.signal })));
  const lines = steps.flatMap((step) => {
    const { words, by_length } = step.result as unknown as Count;
    const most = Math.max(...Object.values(by_length));
    const bars = Object.entries(by_length).map(
      ([length, count]) => `  ${length.padStart(2)} ${"#".repeat(Math.ceil((width * count) / most))} ${count}`,
    );
    return [`${step.name}: ${words} words, by length`, ...bars];
  });
  return { chart: lines.join("\n") };
});

worker.stopOn("SIGTERM", "SIGINT");
await worker.run();
