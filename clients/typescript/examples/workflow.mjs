// A workflow whose steps are done by `worker.mjs`, wherever that runs:
//     node examples/workflow.mjs [URL]
import { Client } from "taskledger";

const client = new Client({ url: process.argv[2] ?? process.env.TASKLEDGER_URL, token: process.env.TASKLEDGER_TOKEN });

// `type: "remote"`: a worker does it. Without one the tasks wait, for 60 s at most.
const remote = (method) => ({ schemas: { method, type: "remote" }, params: { schedule_to_start_seconds: 60, retry_count: 2 } });

const { run, task } = await client.executeAndWait(
  [
    { id: "report", name: "report" },
    { id: "words", name: "words", parent_id: "report", ...remote("count_words"), inputs: { text: "to be or not to be" } },
    { id: "pages", name: "pages", parent_id: "report", ...remote("render"), inputs: { pages: 5 } },
    {
      id: "summary",
      name: "summary",
      parent_id: "report",
      schemas: { method: "aggregate_results_executor" },
      dependencies: [{ id: "words" }, { id: "pages" }],
    },
  ],
  {
    onEvent: ({ type, data }) => {
      if (type === "task_progress_update") console.log(`${Math.round(data.progress * 100)} %`, data.message ?? "");
      if (type === "task_failed") console.log("failed:", data.error);
    },
  },
);

console.log(`the run is ${run.state}:`, run.counts);
for (const child of await client.children(task.id)) console.log(child.name, child.status, JSON.stringify(child.result ?? child.error));
