// Medians, the disk's own figure, and the table.
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";

const SYNCS = 200;
const PAGE_BYTES = 4096;
/** What each of ours is put beside: the systems of others. */
const OURS = "taskledger";

export function median(all) {
  const sorted = all.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/** Milliseconds that an append of 4 KiB and its sync take in a folder. */
export function syncMs(folder) {
  const page = Buffer.alloc(PAGE_BYTES, 1);
  const file = openSync(join(folder, "sync"), "a");
  const took = [];
  for (let k = 0; k < SYNCS; k++) {
    const begun = performance.now();
    writeSync(file, page);
    fdatasyncSync(file);
    took.push(performance.now() - begun);
  }
  closeSync(file);
  return median(took);
}

/** A table in Markdown: medians of the rounds, the smallest and the largest, and how many times better taskledger is. */
export function table(shapes, figures, versions, machine) {
  const names = Object.keys(versions);
  const isOurs = (name) => name.startsWith(OURS);
  const others = names.filter((name) => !isOurs(name));
  const pairs = names.filter(isOurs).flatMap((ours) => others.map((other) => [ours, other]));
  const lines = [
    `${machine.cpus} processors, Node.js ${machine.node}, load ${machine.load.toFixed(2)} behind the run; a sync of 4 KiB took ${machine.sync_ms.toFixed(2)} ms.`,
    ...names.map((name) => `- ${name}: ${versions[name]}`),
    "",
    `| | ${names.join(" | ")} | ${pairs.map(([ours, other]) => `${ours} to ${other}`).join(" | ")} |`,
    `|---|${"---|".repeat(names.length + Math.max(1, pairs.length))}`,
  ];
  for (const [at, { name, unit, moreIsBetter }] of shapes.entries()) {
    const of = figures[at];
    const cells = names.map((name) => {
      const [low, high] = [Math.min(...of[name]), Math.max(...of[name])];
      return `${shown(median(of[name]))} ${unit} (${shown(low)} to ${shown(high)})`;
    });
    const ratios = pairs.map(([ours, other]) => {
      const ratio = median(of[ours]) / median(of[other]);
      return `${shown(moreIsBetter ? ratio : 1 / ratio)} times ${moreIsBetter ? "the rate" : "as fast"}`;
    });
    lines.push(`| ${name} | ${cells.join(" | ")} | ${ratios.join(" | ")} |`);
  }
  return lines.join("\n");
}

function shown(number) {
  return number >= 100 ? Math.round(number).toLocaleString("en") : number.toPrecision(3);
}
