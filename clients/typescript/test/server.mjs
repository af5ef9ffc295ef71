// The real server: TASKLEDGER_BIN names the program. Its data lie in a folder that is deleted.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export const binary = process.env.TASKLEDGER_BIN;

/** A port below those that systems give out: nobody else gets it while its server is down. */
async function freePort() {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 17_000);
    const probe = createServer();
    const isFree = await new Promise((resolve) => {
      probe.once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

export class Server {
  /** A server on a free port, which it keeps over restarts. */
  static async start(...flags) {
    const server = new Server();
    server.folder = await mkdtemp(join(tmpdir(), "taskledger-"));
    server.flags = flags;
    await server.up(await freePort());
    return server;
  }

  async up(port = this.port) {
    const auth = this.flags.includes("--auth") ? [] : ["--auth", "off"];
    const args = ["serve", "--data-dir", this.folder, "--listen", `127.0.0.1:${port}`, ...auth, ...this.flags];
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("TASKLEDGER_")));
    this.process = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"], env });
    this.log = [];
    await new Promise((resolve, reject) => {
      const line = (text) => {
        this.log.push(text);
        const url = /"url":"(http:[^"]+)"/.exec(text);
        if (text.includes('"listening"') && url) {
          this.url = url[1];
          this.port = Number(new URL(url[1]).port);
          resolve();
        }
      };
      createInterface(this.process.stdout).on("line", line);
      createInterface(this.process.stderr).on("line", line);
      this.process.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${this.log.slice(-5).join("\n")}`)));
    });
  }

  async kill(signal = "SIGKILL") {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const exited = once(this.process, "exit");
    this.process.kill(signal);
    await exited;
  }

  async stop() {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** Waits until `check` holds. */
export async function until(check, ms = 20_000) {
  const end = performance.now() + ms;
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`waited in vain for ${check}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
