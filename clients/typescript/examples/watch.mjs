// Prints what happens on a server, and goes on where it was when the connection breaks:
//     node examples/watch.mjs [URL]
import { Client } from "taskledger";

const client = new Client({ url: process.argv[2] ?? process.env.TASKLEDGER_URL, token: process.env.TASKLEDGER_TOKEN });

for await (const event of client.events({ types: ["task_completed", "task_failed", "task_cancelled"] })) {
  if (event.type === "reset") console.log("events may be missing:", event.data.reason);
  else console.log(event.data.timestamp, event.type, event.data.task_id, event.data.error ?? "");
}
