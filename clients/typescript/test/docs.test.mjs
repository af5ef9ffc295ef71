// The examples of the documentation, as TypeScript of a user who compiles with `--strict`.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
/** From the root of the repository, and how many examples each has at least. */
const PAGES = { "docs/guides/workers.md": 3, "docs/guides/contracts.md": 2, "clients/typescript/README.md": 5 };
/** What examples without an `import` take from the ones above them, or from the reader's program. */
const AROUND = `
import { Client, InvalidParamsError } from "taskledger";
import { Worker } from "taskledger/worker";
declare const client: Client, worker: Worker, rootTaskId: string, reload: () => Promise<void>;
`;

/** `[file name, text]` of each example of a page that uses the package. */
function examples(page, text) {
  const found = [...text.matchAll(/^```(?:js|ts)\n(.*?)^```$/gms)].map(([, code], i) => {
    const name = `${page.replaceAll(/\W/g, "-")}-${i + 1}.ts`;
    // Names of the example hide those around it.
    return [name, /^import /m.test(code) ? code : `${AROUND}export async function example() {\n${code}\n}\n`];
  });
  return found.filter(([, code]) => code.includes('from "taskledger'));
}

test("the examples of the documentation compile under `tsc --strict`", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "taskledger-examples-"));
  t.after(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "node_modules"));
  await symlink(PACKAGE, join(folder, "node_modules/taskledger"));
  await symlink(join(PACKAGE, "node_modules/@types"), join(folder, "node_modules/@types"));
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  const files = [];
  for (const [page, least] of Object.entries(PAGES)) {
    const found = examples(page, await readFile(join(PACKAGE, "../..", page), "utf8"));
    assert.ok(found.length >= least, `${page}: ${found.length} examples`);
    for (const [name, code] of found) {
      await writeFile(join(folder, name), code);
      files.push(name);
    }
  }
  const tsc = join(PACKAGE, "node_modules/typescript/bin/tsc");
  const options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--types", "node"];
  await promisify(execFile)(process.execPath, [tsc, ...options, ...files], { cwd: folder }).catch((error) => {
    assert.fail(`${error.stdout}${error.stderr}`);
  });
});
