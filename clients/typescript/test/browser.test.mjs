// The client in a page of Chromium, against the real server, which is of another origin.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, normalize } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { binary, Server } from "./server.mjs";

const hasChromium = spawnSync("chromium", ["--version"]).status === 0;
const skip = !binary ? "TASKLEDGER_BIN is not set" : !hasChromium ? "there is no chromium" : false;
const folder = fileURLToPath(new URL("..", import.meta.url));

const page = (url) => `<!doctype html><script type="module">
const told = [];
try {
  const { Client, TaskNotFoundError } = await import("/dist/index.js");
  const client = new Client({ url: ${JSON.stringify(url)} });
  const events = client.events({ types: ["task_completed"], from: "beginning" });
  const { run, task } = await client.executeAndWait({ name: "in a page", schemas: { method: "echo_executor" }, inputs: { a: 1 } });
  told.push(run.state, task.result, (await events.next()).value.data.result);
  await events.return();
  await client.get("0f8fad5b-d9cb-469f-a165-70867728950e").catch((e) => told.push(e instanceof TaskNotFoundError));
} catch (error) { told.push(String(error)); }
await fetch("/told", { method: "POST", body: JSON.stringify(told) });
</script>`;

test("the client in a browser", { skip, timeout: 60_000 }, async () => {
  let tell;
  const told = new Promise((resolve) => (tell = resolve));
  let api;
  const pages = createServer(async (request, response) => {
    if (request.url === "/told") {
      let text = "";
      for await (const piece of request) text += piece;
      response.end();
      return tell(JSON.parse(text));
    }
    if (request.url === "/") return response.writeHead(200, { "content-type": "text/html" }).end(page(api.url));
    const path = normalize(request.url);
    if (!path.startsWith("/dist/") || path.startsWith("/dist/worker")) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": "text/javascript" }).end(await readFile(join(folder, path)).catch(() => ""));
  });
  pages.listen(0, "127.0.0.1");
  await once(pages, "listening");
  const origin = `http://127.0.0.1:${pages.address().port}`;
  api = await Server.start("--allow-origin", origin);
  const profile = await mkdtemp(join(tmpdir(), "taskledger-page-"));
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0"];
  const browser = spawn("chromium", [...flags, `--user-data-dir=${profile}`, origin], { stdio: "ignore", env: { PATH: process.env.PATH, HOME: profile } });
  try {
    assert.deepEqual(await told, ["completed", { a: 1 }, { a: 1 }, true]);
  } finally {
    browser.kill("SIGKILL");
    await once(browser, "exit");
    pages.closeAllConnections();
    pages.close();
    await api.stop();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
});
