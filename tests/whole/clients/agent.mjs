// An agent made with the official SDK of A2A 1.0 in JavaScript, which the tests call. Prints the URL of its card's server.
//
// What it does is the first word of a message: `say` answers with a message and no task, `stream` makes an artifact in
// pieces, `ask` asks once and makes an artifact of the answer, `again` makes an artifact before it asks, `wait` works until
// it is cancelled, `fail` fails, and `reject` rejects.

import { createRequire } from "node:module";

// The packages are not beside this file.
const require = createRequire(`${process.env.NODE_PATH}/`);
const { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } = require("@a2a-js/sdk");
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = require("@a2a-js/sdk/server");
const { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } = require("@a2a-js/sdk/server/express");
const express = require("express");

const STREAMS = !process.argv.includes("--polled");

class Agent {
    #cancelled = new Map();

    async execute(context, bus) {
        const { taskId, contextId, userMessage } = context;
        const words = userMessage.parts.map((part) => part.content?.value).join(" ");
        const message = (text) => ({
            messageId: crypto.randomUUID(), contextId, taskId, role: "ROLE_AGENT", parts: [{ text }],
        });
        const status = (state, text) =>
            bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({
                taskId, contextId,
                status: { state: `TASK_STATE_${state}`, ...(text && { message: message(text) }) },
            })));
        const artifact = (artifactId, text, more = {}) =>
            bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({
                taskId, contextId, artifact: { artifactId, name: artifactId, parts: [{ text }] }, ...more,
            })));
        if (words.startsWith("say")) {
            bus.publish(AgentEvent.message(Message.fromJSON({ ...message("Hello World"), taskId: "" })));
            bus.finished();
            return;
        }
        // The SDK wants it first, also of a later turn.
        bus.publish(AgentEvent.task(context.task ?? Task.fromJSON({
            id: taskId, contextId, status: { state: "TASK_STATE_SUBMITTED" }, history: [Message.toJSON(userMessage)],
        })));
        if (context.task) {
            status("WORKING");
            artifact("answer", `answered ${words}`);
            status("COMPLETED");
        } else if (words.startsWith("stream")) {
            status("WORKING", "thinking");
            ["to be", " or not", " to be"].forEach((piece, i) =>
                artifact("words", piece, { append: i > 0, lastChunk: i === 2 }));
            status("COMPLETED");
        } else if (words.startsWith("ask") || words.startsWith("again")) {
            if (words.startsWith("again")) {
                artifact("draft", "a draft");
            }
            status("INPUT_REQUIRED", "Which colour?");
        } else if (words.startsWith("wait")) {
            status("WORKING");
            await new Promise((resolve) => this.#cancelled.set(taskId, resolve));
            status("CANCELED");
        } else if (words.startsWith("fail")) {
            status("FAILED", "no paper");
        } else if (words.startsWith("reject")) {
            status("REJECTED", "not today");
        } else {
            status("COMPLETED", `nothing for ${words}`);
        }
        bus.finished();
    }

    async cancelTask(taskId) {
        this.#cancelled.get(taskId)?.();
    }
}

const app = express();
const server = app.listen(0, "127.0.0.1", () => {
    const url = `http://127.0.0.1:${server.address().port}`;
    const at = (path, protocolBinding) => ({ url: `${url}${path}`, protocolBinding, protocolVersion: "1.0" });
    const card = AgentCard.fromJSON({
        name: "javascript-peer", description: "Does what the first word says", version: "1",
        supportedInterfaces: [at("/rpc", "JSONRPC"), at("/rest", "HTTP+JSON")],
        capabilities: { streaming: STREAMS }, defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"],
        skills: [{ id: "words", name: "words", description: "Words", tags: ["words"] }],
    });
    const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Agent());
    const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
    app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
    app.use("/rpc", jsonRpcHandler(options));
    app.use("/rest", restHandler(options));
    console.log(url);
});
