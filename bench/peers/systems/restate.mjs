// Restate on one node. Chain and fan are handlers that call another one, as its users write them.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "@restatedev/restate-sdk-clients";
import { freePort, start } from "../processes.mjs";

const WORKER = fileURLToPath(new URL("../workers/restate.mjs", import.meta.url));
const require = createRequire(import.meta.url);
const { version } = require("@restatedev/restate-server/package.json");
const SERVER = fileURLToPath(new URL("../node_modules/.bin/restate-server", import.meta.url));

export async function restate({ folder }) {
  const [ingress, admin, node, service] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const settings = join(folder, "restate.toml");
  writeFileSync(
    settings,
    `base-dir = ${JSON.stringify(join(folder, "data"))}
node-name = "peer"
cluster-name = "peer-${process.pid}"
listen-mode = "tcp"
bind-address = "127.0.0.1:${node}"
advertised-address = "http://127.0.0.1:${node}"
log-filter = "error"

[admin]
bind-address = "127.0.0.1:${admin}"

[ingress]
bind-address = "127.0.0.1:${ingress}"
`,
  );
  const server = start(SERVER, ["--config-file", settings, "--no-logo"], { DO_NOT_TRACK: "1" });
  await server.ready(async () => (await fetch(`http://127.0.0.1:${admin}/health`)).ok);
  const worker = start(process.execPath, [WORKER, String(service)]);
  const register = () =>
    fetch(`http://127.0.0.1:${admin}/deployments`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ uri: `http://127.0.0.1:${service}` }),
    });
  await worker.ready(async () => (await register()).ok);
  const client = connect({ url: `http://127.0.0.1:${ingress}` }).serviceClient({ name: "noop" });
  return {
    version: `Restate ${version}`,
    call: () => client.one({ k: 1 }),
    chain: (length) => client.chain(length),
    fan: (width) => client.fan(width),
    async end() {
      await worker.end();
      await server.end();
    },
  };
}
