// Runs the same four shapes on taskledger, BullMQ and Restate, in turns, and prints what they took:
//     node run.mjs [--program target/release/taskledger] [--rounds 5] [--only taskledger,bullmq] [--data-dir DIR] [--json FILE]
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { median, syncMs, table } from "./figures.mjs";
import { endAll } from "./processes.mjs";
import { bullmq } from "./systems/bullmq.mjs";
import { restate } from "./systems/restate.mjs";
import { taskledger, taskledgerClient, taskledgerSocket } from "./systems/taskledger.mjs";

/** Calls in flight, and what a worker does at once at most. */
const IN_FLIGHT = 64;
const MANY = 2_000;
const ONE_AT_A_TIME = 200;
const CHAIN = 100;
const FAN = 500;
/** What warms a system up: calls, and chains and fans; and what that may take, lest a system that answers nothing is waited for. */
const WARM_UP_CALLS = 500;
const WARM_UP_FLOWS = 3;
const WARM_UP_MS = 60_000;

const SYSTEMS = { taskledger, "taskledger-client": taskledgerClient, "taskledger-socket": taskledgerSocket, bullmq, restate };

const { values } = parseArgs({
  options: {
    program: { type: "string", default: fileURLToPath(new URL("../../target/release/taskledger", import.meta.url)) },
    redis: { type: "string", default: "redis-server" },
    rounds: { type: "string", default: "5" },
    only: { type: "string", default: Object.keys(SYSTEMS).join(",") },
    "data-dir": { type: "string", default: tmpdir() },
    json: { type: "string" },
  },
});

/** So many calls, so many at a time. */
async function many(system, calls, inFlight) {
  let left = calls;
  const one = async () => {
    while (left-- > 0) await system.call();
  };
  await Promise.all(Array.from({ length: inFlight }, one));
}

async function timed(work) {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

async function within(ms, name, work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${name} has not answered within ${ms} ms`)), ms);
  });
  await Promise.race([work(), late]);
  clearTimeout(timer);
}

/** What is measured: a name, a unit, whether more is better, and one round of it. */
const SHAPES = [
  {
    name: `call and wait, ${IN_FLIGHT} in flight`,
    unit: "1/s",
    moreIsBetter: true,
    round: async (system) => (1_000 * MANY) / (await timed(() => many(system, MANY, IN_FLIGHT))),
  },
  {
    name: "call and wait, one in flight, p50",
    unit: "ms",
    async round(system) {
      const took = [];
      for (let k = 0; k < ONE_AT_A_TIME; k++) took.push(await timed(() => system.call()));
      return median(took);
    },
  },
  { name: `chain of ${CHAIN}`, unit: "ms", round: (system) => timed(() => system.chain(CHAIN)) },
  { name: `fan of ${FAN}, and one that waits for them`, unit: "ms", round: (system) => timed(() => system.fan(FAN)) },
];

const root = mkdtempSync(join(resolve(values["data-dir"]), "taskledger-peers-"));
const running = {};
const end = async () => {
  await Promise.allSettled(Object.values(running).map((system) => system.end()));
  await endAll();
  rmSync(root, { recursive: true, force: true });
};
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void end().then(() => process.exit(130)));

try {
  console.error(`load of the machine before: ${loadavg()[0].toFixed(2)}`);
  for (const name of values.only.split(",")) {
    if (!(name in SYSTEMS)) throw new Error(`--only: \`${name}\` is none of ${Object.keys(SYSTEMS).join(", ")}`);
    const folder = join(root, name);
    mkdirSync(folder);
    console.error(`${name}: start`);
    const system = await SYSTEMS[name]({ folder, program: resolve(values.program), redis: values.redis, window: IN_FLIGHT });
    running[name] = system;
    await within(WARM_UP_MS, name, async () => {
      await many(system, WARM_UP_CALLS, IN_FLIGHT);
      for (let k = 0; k < WARM_UP_FLOWS; k++) {
        await system.chain(CHAIN);
        await system.fan(FAN);
      }
    });
  }
  const figures = SHAPES.map(() => Object.fromEntries(Object.keys(running).map((name) => [name, []])));
  const synced = [];
  for (let round = 0; round < Number(values.rounds); round++) {
    console.error(`round ${round + 1}`);
    synced.push(syncMs(root));
    for (const [at, shape] of SHAPES.entries()) {
      // Whoever comes first may have it better or worse: each takes its turn.
      const names = Object.keys(running);
      for (const k of names.keys()) {
        const name = names[(k + round) % names.length];
        figures[at][name].push(await shape.round(running[name]));
      }
    }
  }
  const versions = Object.fromEntries(Object.entries(running).map(([name, { version }]) => [name, version]));
  const machine = { cpus: cpus().length, node: process.version, sync_ms: median(synced), load: loadavg()[0] };
  console.log(table(SHAPES, figures, versions, machine));
  if (values.json) {
    const shapes = SHAPES.map(({ name, unit }, at) => ({ name, unit, figures: figures[at] }));
    writeFileSync(values.json, JSON.stringify({ machine, versions, shapes }, undefined, 2));
  }
} finally {
  await end();
}
process.exit(0);
