// The official client in JavaScript, unchanged, over one binding: eighteen steps, with the token in TOKEN if there is one.
// Prints a line for each; fails at the first that goes wrong. Push and the extended card are skipped only where the card
// does not declare them.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

// The packages are not beside this file.
const require = createRequire(`${process.env.NODE_PATH}/`);
const { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, RestTransportFactory } =
    require("@a2a-js/sdk/client");
const { GrpcTransportFactory } = require("@a2a-js/sdk/client/grpc");
const { SendMessageRequest, TaskState } = require("@a2a-js/sdk");

const [url, binding] = process.argv.slice(2);
const UNKNOWN = "00000000-0000-4000-8000-000000000000";
const ECHO = { name: "echo", schemas: { method: "echo_executor" }, inputs: { n: 7 } };
const SHORT = { name: "short", schemas: { method: "sleep_executor" }, inputs: { duration_ms: 300 } };
const LONG = { name: "long", schemas: { method: "sleep_executor" }, inputs: { duration_ms: 600_000 } };
const ASK = {
    name: "ask",
    schemas: { method: "approval_executor" },
    inputs: { question: "Which colour?", response_type: "text" },
};

const passed = (step) => console.log(`passed ${step}`);
const skipped = (step) => console.log(`skipped ${step}`);
const tasks = (...all) => ({ data: { tasks: all } });
const request = (part, { now = false, ...members } = {}) =>
    SendMessageRequest.fromJSON({
        message: { messageId: randomUUID(), role: "ROLE_USER", parts: [part], ...members },
        configuration: { returnImmediately: now },
    });
const items = async (stream) => {
    const all = [];
    for await (const item of stream) all.push(item);
    return all;
};
const fails = (reason, call) =>
    assert.rejects(call, (error) => {
        assert.match(`${error.name} ${error.constructor.name} ${error.reason} ${error.message}`, reason);
        return true;
    });
const payload = (item) => item.payload ?? item.result ?? item;

const transports = {
    JSONRPC: () => new JsonRpcTransportFactory(),
    "HTTP+JSON": () => new RestTransportFactory(),
    GRPC: () => new GrpcTransportFactory(),
};
const authorization = `Bearer ${process.env.TOKEN}`;
const withToken = {
    before: async (args) => {
        args.options = { ...args.options, serviceParameters: { ...args.options?.serviceParameters, authorization } };
    },
    after: async () => {},
};
const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [transports[binding]()],
    preferredTransports: [binding],
    clientConfig: { interceptors: process.env.TOKEN ? [withToken] : [] },
});
const client = await new ClientFactory({ ...options, transports: [transports[binding]()] }).createFromUrl(url);
const card = await client.getAgentCard();
assert.equal(card.name, "taskledger");
passed("card");

const said = async (sent) => {
    const answer = await client.sendMessage(sent);
    return answer;
};
const text = await said(request({ text: "hello" }));
assert.equal(text.role !== undefined, true, JSON.stringify(text));
passed("send text");

const done = await said(request(tasks(ECHO), { contextId: "c-1" }));
assert.equal(done.status.state, TaskState.TASK_STATE_COMPLETED, JSON.stringify(done));
assert.equal(done.artifacts[0].parts[0].content.value.n, 7);
passed("send tasks and wait");

const long = await said(request(tasks(LONG), { now: true }));
assert.ok([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING].includes(long.status.state));
passed("return immediately");

const state = (item) => payload(item).value.status.state;
const kinds = (all) => all.map((item) => payload(item).$case);
const told = await items(client.sendMessageStream(request(tasks(SHORT))));
assert.equal(kinds(told)[0], "task", JSON.stringify(told));
assert.equal(state(told.at(-1)), TaskState.TASK_STATE_COMPLETED);
assert.ok(kinds(told).includes("artifactUpdate"));
passed("stream");

const read = await client.getTask({ tenant: "", id: done.id, historyLength: undefined });
assert.equal(read.id, done.id);
assert.ok(read.history.length > 0);
passed("get");
const short = await client.getTask({ tenant: "", id: done.id, historyLength: 0 });
assert.equal(short.history.length, 0);
passed("history length");

const list = (more) =>
    client.listTasks({ tenant: "", contextId: "", status: 0, pageToken: "", ...more });
const listed = await list({});
assert.ok(listed.totalSize === listed.tasks.length && listed.totalSize >= 3, JSON.stringify(listed));
passed("list");
const page = await list({ pageSize: 1 });
const rest = await list({ pageSize: 100, pageToken: page.nextPageToken });
const ids = [...page.tasks, ...rest.tasks].map((task) => task.id);
assert.deepEqual(ids, listed.tasks.map((task) => task.id));
passed("list pages");

const stream = client.resubscribeTask({ tenant: "", id: long.id });
const first = (await stream.next()).value;
assert.equal(payload(first).value.id, long.id);
const cancel = (id) => client.cancelTask({ tenant: "", id, metadata: undefined });
const cancelled = await cancel(long.id);
assert.equal(cancelled.status.state, TaskState.TASK_STATE_CANCELED);
passed("cancel");
assert.equal(state((await items(stream)).at(-1)), TaskState.TASK_STATE_CANCELED);
passed("subscribe");
await fails(/NotCancel|NOT_CANCEL/i, cancel(long.id));
passed("cancel what has ended");
await fails(/NotFound|NOT_FOUND/i, client.getTask({ tenant: "", id: UNKNOWN, historyLength: undefined }));
passed("unknown task");

const asked = await said(request(tasks(ASK)));
assert.equal(asked.status.state, TaskState.TASK_STATE_INPUT_REQUIRED, JSON.stringify(asked));
assert.equal(asked.status.message.parts[0].content.value, "Which colour?");
const answered = await said(request({ text: "blue" }, { taskId: asked.id }));
assert.equal(answered.id, asked.id);
assert.equal(answered.contextId, asked.contextId);
assert.equal(answered.status.state, TaskState.TASK_STATE_COMPLETED);
passed("input required");

const again = await said(request(tasks(ECHO), { contextId: "c-1" }));
assert.equal(again.contextId, "c-1");
const ofContext = await list({ contextId: "c-1" });
assert.deepEqual(new Set(ofContext.tasks.map((task) => task.id)), new Set([again.id, done.id]));
passed("context");

if (card.capabilities.pushNotifications) {
    const waits = await said(request(tasks(LONG), { now: true }));
    const config = {
        tenant: "", taskId: waits.id, id: "p-1", url: "https://example.com/hook", token: "", authentication: undefined,
    };
    const one = { tenant: "", taskId: waits.id, id: "p-1" };
    const all = { tenant: "", taskId: waits.id, pageSize: 0, pageToken: "" };
    assert.equal((await client.createTaskPushNotificationConfig(config)).id, "p-1");
    assert.equal((await client.getTaskPushNotificationConfig(one)).url, config.url);
    assert.equal((await client.listTaskPushNotificationConfig(all)).configs.length, 1);
    await client.deleteTaskPushNotificationConfig(one);
    assert.equal((await client.listTaskPushNotificationConfig(all)).configs.length, 0);
    await cancel(waits.id);
    passed("push configurations");
} else {
    skipped("push configurations");
}

if (card.capabilities.extendedAgentCard) {
    // It is the card that the client gives once there is one.
    assert.equal((await client.getAgentCard()).name, "taskledger");
    passed("extended card");
} else {
    skipped("extended card");
}

const both = [1, 2].map(() => client.sendMessageStream(request(tasks(LONG))));
for (const each of both) {
    const begun = (await each.next()).value;
    await cancel(payload(begun).value.id);
}
for (const each of both) {
    assert.equal(state((await items(each)).at(-1)), TaskState.TASK_STATE_CANCELED);
}
passed("two streams");
process.exit(0);
