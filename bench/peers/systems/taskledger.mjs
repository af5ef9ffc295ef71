// taskledger on SQLite with a worker on the socket, for three kinds of callers.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { fileURLToPath } from "node:url";
import { Client } from "taskledger";
import { SocketClient } from "taskledger/socket";
import { freePort, start } from "../processes.mjs";

const WORKER = fileURLToPath(new URL("../../../clients/typescript/examples/bench-worker.mjs", import.meta.url));
const METHOD = "noop";

const schemas = { method: METHOD, type: "remote" };
const ROOT = { id: "root", name: "all" };
const child = (id, dependencies) => ({ id, name: id, parent_id: "root", schemas, inputs: { k: 1 }, dependencies });

const ONE = { name: "one", schemas, inputs: { k: 1 } };
const chainOf = (length) => [ROOT, ...Array.from({ length }, (_, k) => child(`t${k}`, k === 0 ? [] : [{ id: `t${k - 1}` }]))];
const fanOf = (width) => {
  const all = Array.from({ length: width }, (_, k) => ({ id: `t${k}` }));
  return [ROOT, ...all.map(({ id }) => child(id, [])), child("last", all)];
};

/** A server with a folder of its own, and a worker on its socket. */
async function served({ folder, program, window }) {
  const url = `http://127.0.0.1:${await freePort()}`;
  const server = start(program, ["serve", "--listen", url.slice("http://".length), "--log-level", "error", "--data-dir", folder]);
  const client = new Client({ url });
  await server.ready(async () => (await client.health({ retryForMs: 0 })).status !== undefined);
  const args = [WORKER, "--url", url, "--method", METHOD, "--window", String(window), "--connection", "socket", "--name", "peer"];
  const worker = start(process.execPath, args);
  await worker.ready(async () => (await client.workers.list()).some((one) => one.worker === "peer"));
  const end = async () => {
    await worker.end();
    await server.end();
  };
  return { url, client, end };
}

/** The caller submits with one request over `node:http` and reads the stream with which it is answered. */
export async function taskledger(options) {
  const { url, end } = await served(options);
  const agent = new Agent({ keepAlive: true });

  /** Waits for the end of the stream, which tells of the result and of the end of the run. */
  async function run(tasks, name) {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tasks.execute", params: { tasks, use_streaming: true } });
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const call = request(url, { method: "POST", agent, headers });
    call.end(body);
    const [response] = await once(call, "response");
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (piece) => (text += piece));
    await once(response, "end");
    return resultOf(text, name);
  }

  return {
    version: execFileSync(options.program, ["--version"], { encoding: "utf8" }).split("\n")[0],
    call: () => run([ONE], "one"),
    chain: (length) => run(chainOf(length), `t${length - 1}`),
    fan: (width) => run(fanOf(width), "last"),
    async end() {
      agent.destroy();
      await end();
    },
  };
}

/** The result of the task with this name, out of a stream of events whose run has completed. */
function resultOf(text, name) {
  let result;
  let state;
  for (const message of text.split("\n\n")) {
    const isResult = message.includes("\nevent: task_completed\n");
    if (!isResult && !message.includes("\nevent: run_completed\n")) continue;
    const told = JSON.parse(message.slice(message.indexOf("\ndata: ") + "\ndata: ".length));
    if (!isResult) state = told.run.state;
    else if (told.name === name) result = told.result;
  }
  if (state !== "completed" || result === undefined) throw new Error(`the run did not complete: ${text}`);
  return result;
}

/** The caller uses `executeAndWait` of the client package. */
export async function taskledgerClient(options) {
  const { client, end } = await served(options);
  const run = async (tasks) => {
    const { run, task } = await client.executeAndWait(tasks);
    if (run.state !== "completed") throw new Error(`the run did not complete: ${run.state}`);
    return task.result;
  };
  return {
    version: "the same, called with `executeAndWait` of the client package",
    call: () => run([ONE]),
    chain: (length) => run(chainOf(length)),
    fan: (width) => run(fanOf(width)),
    end,
  };
}

/** The caller starts and awaits all runs over one socket, as the others do over their connections. */
export async function taskledgerSocket(options) {
  const { url, end } = await served(options);
  const runs = new SocketClient({ url });
  const run = async (tasks, name) => {
    const { started, run, results } = await runs.executeAndWait(tasks);
    const result = results[started.task_ids[name]];
    if (run.state !== "completed" || result === undefined) throw new Error(`the run did not complete: ${run.state}`);
    return result;
  };
  return {
    version: "the same, called with `SocketClient` of the client package",
    call: () => run([ONE], "one"),
    chain: (length) => run(chainOf(length), `t${length - 1}`),
    fan: (width) => run(fanOf(width), "last"),
    async end() {
      runs.close();
      await end();
    },
  };
}
