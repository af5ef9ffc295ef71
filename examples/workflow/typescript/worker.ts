// Does the phases `incident.assess` and `incident.publish`.
import { jsonLog, Worker } from "taskledger/worker";

interface Collected {
  requests: number;
  failures: Record<string, number>;
}

const worker = new Worker({
  url: process.env.TASKLEDGER_URL,
  token: process.env.TASKLEDGER_TOKEN,
  name: "incident-typescript",
  concurrency: 4,
  log: jsonLog("warn"),
});

worker.method<Collected>("incident.assess", async ({ requests, failures }) => {
  const services = Object.entries(failures).sort(([a], [b]) => (a < b ? -1 : 1));
  const failed = services.reduce((sum, [, count]) => sum + count, 0);
  const most = Math.max(0, ...Object.values(failures));
  const width = Math.max(0, ...services.map(([service]) => service.length));
  const bars = services.map(([service, count]) => `  ${service.padEnd(width)} ${"#".repeat(count).padEnd(most)} ${count}`);
  return { severity: failed * 2 >= requests ? "major" : "minor", failed, chart: bars.join("\n") };
});

worker.method<{ report: string; approved_by: string }>("incident.publish", async ({ report, approved_by }) => {
  const text = report.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return { page: `<pre>\n${text}\n</pre>`, approved_by };
});

worker.stopOn("SIGTERM", "SIGINT");
await worker.run();
