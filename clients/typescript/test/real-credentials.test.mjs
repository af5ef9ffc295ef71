// Clients and workers with tokens, against the real server.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client, MethodNotFoundError, UnauthorizedError } from "taskledger";
import { Worker } from "taskledger/worker";
import { binary, Server, until } from "./server.mjs";

let server;
let admin;
let why = binary ? undefined : "TASKLEDGER_BIN is not set";

before(async () => {
  if (!binary) return;
  server = await Server.start("--auth", "on");
  admin = new Client({ url: server.url, token: (await readFile(join(server.folder, "admin.token"), "utf8")).trim() });
  await admin.workers.methods().catch((error) => {
    if (!(error instanceof MethodNotFoundError)) throw error;
    why = "this server has no workers";
  });
});
after(() => server?.stop());

function real(name, body) {
  test(name, async (t) => (why ? t.skip(why) : body(t)));
}

const tokenFor = (methods) =>
  admin.call("tokens.create", { name: "w", kind: "service", scopes: ["worker", "users:any"], ...(methods ? { methods } : {}) });

function worker(options) {
  const entries = [];
  const made = new Worker({ url: server.url, log: (entry) => entries.push(entry), ...options });
  made.entries = entries;
  return made;
}

for (const connection of ["socket", "poll"]) {
  real(`${connection}: a worker whose token is revoked ends with an error`, async () => {
    const { token, id } = await tokenFor();
    const w = worker({ connection, token, pollSeconds: 2 }).method("revoked", async () => ({}));
    const run = w.run();
    await admin.executeAndWait({ name: "t", schemas: { method: "revoked", type: "remote" } });
    await admin.call("tokens.revoke", { id });
    await assert.rejects(run, UnauthorizedError);
  });

  real(`${connection}: a worker without credentials ends at once, and so does one that asks for what its token does not allow`, async () => {
    await assert.rejects(worker({ connection }).method("allowed", async () => {}).run(), UnauthorizedError);
    await assert.rejects(worker({ connection, token: "tl_nonsense" }).method("allowed", async () => {}).run(), UnauthorizedError);
    const { token } = await tokenFor(["allowed"]);
    await assert.rejects(worker({ connection, token }).method("other", async () => {}).run(), UnauthorizedError);
  });

  real(`${connection}: a token that ends in the middle of a task is replaced, and the outcome arrives`, async () => {
    let current = await tokenFor();
    const w = worker({ connection, token: () => current.token, leaseSeconds: 30 }).method("slow", async () => {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      return { done: true };
    });
    const run = w.run();
    const { root_task_id: id } = await admin.execute({ name: "t", schemas: { method: "slow", type: "remote" } });
    await until(() => w.held === 1);
    const { id: old } = current;
    current = await tokenFor();
    await admin.call("tokens.revoke", { id: old });
    await until(async () => (await admin.get(id)).status !== "in_progress");
    assert.deepEqual((await admin.get(id)).result, { done: true });
    const again = await admin.executeAndWait({ name: "t", schemas: { method: "slow", type: "remote" } });
    assert.equal(again.task.attempt, 1);
    await w.stop();
    assert.equal(await run, "stopped");
  });
}
