// Processes under measurement: started on ports and in folders of their own, ended with the program.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";

/** Until a process serves. */
const START_MS = 60_000;
/** What it may take to end by itself. */
const END_MS = 10_000;
const LOOK_EVERY_MS = 20;

/** A port that nobody listens on now. */
export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

const started = new Set();

/** Ends what still runs, also what had not become ready. */
export async function endAll() {
  await Promise.all([...started].map((one) => one.end()));
}

/** Starts a program; what it says on stderr is kept, to be shown if it ends too early. */
export function start(program, args, env = {}) {
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["ignore", "ignore", "pipe"] });
  const said = [];
  child.stderr.on("data", (chunk) => {
    said.push(chunk);
    while (said.length > 50) said.shift();
  });
  let failure;
  child.on("error", (error) => (failure = error));
  const handle = {
    /** Waits until `isThere` answers truly. */
    async ready(isThere) {
      for (const until = performance.now() + START_MS; performance.now() < until; ) {
        if (failure) throw new Error(`${program}: ${failure.message}`);
        if (child.exitCode !== null) throw new Error(`${program} has ended with ${child.exitCode}:\n${Buffer.concat(said)}`);
        if (await isThere().catch(() => false)) return;
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
      throw new Error(`${program} was not ready within ${START_MS} ms:\n${Buffer.concat(said)}`);
    },
    async end() {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), END_MS);
      await ended;
      clearTimeout(timer);
    },
  };
  started.add(handle);
  return handle;
}
