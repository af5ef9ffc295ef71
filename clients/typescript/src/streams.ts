/** Streams of events that go on where they broke off, and runs that are followed to their end. */

import { Backoff, sleep } from "./backoff.js";
import { BusyError, ConnectionError, RpcError, toError } from "./errors.js";
import { parse } from "./json.js";
import { messages, type Message } from "./sse.js";
import { readAnswers, type Answer, type RequestOptions, type Transport } from "./transport.js";
import type { EventsQuery, Notice, Run, Started, Task, TaskEvent } from "./types.js";

/** The server sends something every 15 s. */
const SILENCE_MS = 45_000;
/** How long the beginning of a stream may take. */
const OPEN_MS = 35_000;

export interface StreamOptions {
  /** Ends the stream; the loop then throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Called each time that the connection was lost, before it is made anew. */
  onReconnect?: ((error: Error) => void) | undefined;
}

/** What happens, from a place on, for ever: connections that break are made anew, and nothing is missed. */
export async function* events(
  transport: Transport,
  query: EventsQuery,
  options: StreamOptions,
): AsyncGenerator<TaskEvent, void, undefined> {
  const { signal } = options;
  const backoff = new Backoff(200, 10_000);
  let last = query.lastEventId;
  let retryMs: number | undefined;
  for (;;) {
    try {
      for await (const message of opened(transport, query, last, signal)) {
        backoff.reset();
        if (message.retry !== undefined) retryMs = message.retry;
        if (message.id !== undefined) last = message.id;
        const event = toEvent(message, last ?? "");
        if (event) yield event;
      }
      options.onReconnect?.(new ConnectionError("the server ended the stream"));
      await sleep(retryMs ?? backoff.next(), signal);
    } catch (error) {
      signal?.throwIfAborted();
      const wait = waitAfter(error, backoff);
      if (wait === undefined) throw error;
      options.onReconnect?.(error as Error);
      await sleep(wait, signal);
    }
  }
}

async function* opened(transport: Transport, query: EventsQuery, last: string | undefined, signal: AbortSignal | undefined) {
  const asked = new URLSearchParams();
  if (query.flow !== undefined) asked.set("flow", query.flow);
  if (query.task !== undefined) asked.set("task", query.task);
  if (query.user !== undefined) asked.set("user", query.user);
  if (query.types !== undefined) asked.set("types", query.types.join(","));
  for (const [key, value] of Object.entries(query.labels ?? {})) asked.append("label", value === null ? key : `${key}=${value}`);
  if (query.from !== undefined) asked.set("from", String(query.from));
  const headers: Record<string, string> = { accept: "text/event-stream" };
  if (last !== undefined) headers["last-event-id"] = last;
  const response = await transport.get(`events?${asked}`, { signal, timeoutMs: OPEN_MS, headers });
  if (!isStream(response)) {
    const answer = (await readAnswers(response, "events", signal))[0];
    if (answer?.error) throw toError(answer.error, "events");
    throw new ConnectionError(`events: HTTP ${response.status}, which is no stream`, { status: response.status });
  }
  yield* broken(messages(bodyOf(response), SILENCE_MS));
}

/** Failures of the connection as {@link ConnectionError}. */
async function* broken(stream: AsyncGenerator<Message, void, undefined>): AsyncGenerator<Message, void, undefined> {
  try {
    yield* stream;
  } catch (cause) {
    throw new ConnectionError(`the stream broke: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}

function toEvent(message: Message, id: string): TaskEvent | undefined {
  if (message.data === undefined || message.event === undefined) return undefined;
  return { type: message.event, id, data: parse(message.data) } as TaskEvent;
}

function isStream(response: Response): boolean {
  return response.ok && (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
}

function bodyOf(response: Response): ReadableStream<Uint8Array> {
  if (!response.body) throw new ConnectionError("the answer has no body");
  return response.body;
}

/** Milliseconds to wait before the next try; `undefined` when it would fail again. */
function waitAfter(error: unknown, backoff: Backoff): number | undefined {
  if (error instanceof BusyError) return Math.max(error.data.retry_after_ms ?? 0, backoff.next());
  if (error instanceof ConnectionError) return backoff.next();
  // The server could not read its log in time.
  if (error instanceof RpcError && error.code === -32603) return backoff.next();
  return undefined;
}

/** A run that has ended, without the task. */
export interface Followed {
  started: Started;
  /** Absent when another run has begun since: the history has the end of ours. */
  run: Run | undefined;
}

/** The bodies of the calls that {@link follow} makes. */
export interface Calls {
  /** Starts the run, or names it again: it has an idempotency key. Asks for a stream. */
  start: string;
  /** Shows the run, and what follows. */
  subscribe: (taskId: string) => string;
}

/**
 * Starts a run and waits for its end, across lost connections and restarts of the server. Until the run is known,
 * `start` is repeated, for `retryForMs` at most.
 */
export async function follow(
  transport: Transport,
  calls: Calls,
  options: { signal?: AbortSignal | undefined; retryForMs: number; onEvent?: ((event: TaskEvent) => void) | undefined },
): Promise<Followed> {
  const { signal } = options;
  const backoff = new Backoff(100, 5_000);
  const giveUpAt = performance.now() + options.retryForMs;
  let started: Started | undefined;
  let ended: Followed | undefined;
  for (;;) {
    try {
      const body = started ? calls.subscribe(started.task_id ?? started.root_task_id) : calls.start;
      const method = started ? "tasks.subscribe" : "tasks.execute";
      for await (const told of conversation(transport, method, body, { signal, timeoutMs: OPEN_MS })) {
        backoff.reset();
        if ("result" in told) {
          if (!started) started = told.result as Started;
          const run = (told.result as { run?: Run; task?: Task }).run;
          // Another run is there, so ours has ended.
          if (run && run.id !== started.run_id) return { started, run: undefined };
          if (run && run.state !== "running") return { started, run };
          continue;
        }
        options.onEvent?.(told.event);
        const notice = told.event.data as Notice;
        // The stream ends here; reading that lets its connection be used again.
        if (started && notice.final && notice.run?.id === started.run_id) ended = { started, run: notice.run };
      }
      if (ended) return ended;
      await sleep(backoff.next(), signal);
    } catch (error) {
      if (ended) return ended;
      signal?.throwIfAborted();
      const wait = waitAfter(error, backoff);
      if (wait === undefined || (!started && performance.now() + wait > giveUpAt)) throw error;
      await sleep(wait, signal);
    }
  }
}

type Told = { result: unknown } | { event: TaskEvent };

/** The answer to a call, and the events behind it. */
async function* conversation(
  transport: Transport,
  method: string,
  body: string,
  options: RequestOptions,
): AsyncGenerator<Told, void, undefined> {
  const response = await transport.post(body, { ...options, headers: { accept: "text/event-stream, application/json" } });
  if (!isStream(response)) {
    const answer = (await readAnswers(response, method, options.signal))[0];
    if (answer?.error) throw toError(answer.error, method);
    if (answer) yield { result: answer.result };
    return;
  }
  for await (const message of broken(messages(bodyOf(response), SILENCE_MS))) {
    const event = toEvent(message, message.id ?? "");
    if (event) yield { event };
    else if (message.data !== undefined) {
      const answer = parse(message.data) as Answer;
      if (answer.error) throw toError(answer.error, method);
      yield { result: answer.result };
    }
  }
}
