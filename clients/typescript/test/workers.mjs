// Servers that misbehave as told, and workers of them.
import { after } from "node:test";
import { Worker } from "taskledger/worker";
import { FakeServer } from "./fake.mjs";

const servers = [];
after(async () => {
  for (const server of servers) await server.stop().catch(() => {});
});

export async function serve(options) {
  const server = await new FakeServer(options).start();
  servers.push(server);
  return server;
}

export function worker(server, options = {}) {
  const entries = [];
  const made = new Worker({ url: server.url, log: (entry) => entries.push(entry), name: "w", ...options });
  made.entries = entries;
  return made;
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
