/** Calls on their way to the server: over its socket, or over POST. No promise for each call. */

import { ConnectionError, type ErrorObject } from "../errors.js";
import { parse } from "../json.js";
import { reasonOf, type Answer } from "../transport.js";
import type { Posts } from "./posts.js";
import { WebSocketConnection, type connect } from "./websocket.js";

/**
 * What came of a call. `lost`: no answer came, and nobody knows whether it was carried out. `status`: what a proxy said
 * instead. `isUnread`: the server could not read a message on the socket, perhaps the one with this call.
 */
export type Outcome =
  | { result: unknown }
  | { error: ErrorObject }
  | { lost: string; status?: number | undefined; isUnread?: boolean };

/** One call. `params` is JSON. */
export interface Call {
  method: string;
  params: string;
  /** An idempotency key, for a method that changes tasks. */
  key?: string;
  done: (outcome: Outcome) => void;
}

/** Calls that the server takes in one batch. */
const BATCH_CALLS_MAX = 100;
/** Bytes of one message; the server takes 64 KiB on a socket. */
export const MESSAGE_BYTES_MAX = 60 * 1024;
/** Requests over POST at a time. */
const POSTS_MAX = 32;
/** How long an answer over POST may take. */
const POST_MS = 35_000;

/** Whether a text is certainly short enough for a message of the socket, with the rest of its call. */
export function fitsSocket(params: string): boolean {
  const room = MESSAGE_BYTES_MAX - 256;
  return params.length * 3 <= room || Buffer.byteLength(params) <= room;
}

let lastId = 0;

function text(id: number, { method, params, key }: Call): string {
  const metadata = key === undefined ? "" : `,"metadata":{"idempotency_key":${JSON.stringify(key)}}`;
  return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}${metadata}}`;
}

/** A socket that speaks JSON-RPC. */
export class SocketChannel {
  readonly #connection: WebSocketConnection;
  readonly #pending = new Map<number, (outcome: Outcome) => void>();

  constructor(
    connected: Awaited<ReturnType<typeof connect>>,
    private readonly notified: (method: string, params: Record<string, unknown>) => void,
    private readonly ended: (code: number, reason: string) => void,
  ) {
    this.#connection = new WebSocketConnection(connected, {
      text: (message) => this.#message(message),
      closed: (code, reason) => this.#closed(code, reason),
    });
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  /** Sends a call of its own, which the server carries out beside others. */
  call(call: Call): void {
    if (!this.#connection.isOpen) return call.done({ lost: "the socket is closed" });
    const id = ++lastId;
    this.#pending.set(id, call.done);
    this.#connection.send(text(id, call));
  }

  /** Sends calls that the server carries out one after the other, in as few messages as possible. */
  batch(calls: Call[]): void {
    for (const part of parts(calls)) {
      if (part.length === 1) this.call(part[0]!);
      else if (!this.#connection.isOpen) for (const call of part) call.done({ lost: "the socket is closed" });
      else {
        const texts = part.map((call) => {
          const id = ++lastId;
          this.#pending.set(id, call.done);
          return text(id, call);
        });
        this.#connection.send(`[${texts.join(",")}]`);
      }
    }
  }

  watch(silenceMs: number, answerMs: number): void {
    this.#connection.watch(silenceMs, answerMs);
  }

  close(): void {
    this.#connection.close(1000);
  }

  #message(message: string): void {
    let parsed: unknown;
    try {
      parsed = parse(message);
    } catch {
      return this.#connection.close(1007);
    }
    if (Array.isArray(parsed)) for (const one of parsed) this.#one(one);
    else this.#one(parsed as Answer);
  }

  #one(message: Answer & { method?: string; params?: Record<string, unknown> }): void {
    if (message.method !== undefined) return this.notified(message.method, message.params ?? {});
    if (message.id === null) return this.#unread(message.error?.message ?? "a message was not read");
    const id = message.id as number;
    const done = this.#pending.get(id);
    if (done === undefined) return;
    this.#pending.delete(id);
    done(message.error ? { error: message.error } : { result: message.result });
  }

  /** Which calls the server could not read is not known: those that it has are answered twice, which does no harm. */
  #unread(reason: string): void {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const done of pending) done({ lost: reason, isUnread: true });
  }

  #closed(code: number, reason: string): void {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const done of pending) done({ lost: reason });
    this.ended(code, reason);
  }
}

/** Calls over POST, so many at a time. */
export class PostChannel {
  readonly #waiting: Call[][] = [];
  #running = 0;

  constructor(private readonly posts: Posts) {}

  call(call: Call): void {
    this.#begin([call]);
  }

  batch(calls: Call[]): void {
    for (const part of parts(calls)) this.#begin(part);
  }

  #begin(calls: Call[]): void {
    if (this.#running >= POSTS_MAX) {
      this.#waiting.push(calls);
      return;
    }
    this.#running++;
    void this.#post(calls).finally(() => {
      this.#running--;
      const next = this.#waiting.shift();
      if (next) this.#begin(next);
    });
  }

  async #post(calls: Call[]): Promise<void> {
    const done = new Map(calls.map((call) => [++lastId, call]));
    const texts = [...done].map(([id, call]) => text(id, call));
    let lost = "the server sent no answer";
    let status: number | undefined;
    try {
      const body = texts.length === 1 ? texts[0]! : `[${texts.join(",")}]`;
      for (const answer of await this.posts.send(calls[0]!.method, body, { timeoutMs: POST_MS })) {
        // An answer to the whole request has no id.
        const meant = answer.id === null ? [...done.keys()] : [answer.id as number];
        for (const id of meant) {
          const call = done.get(id);
          done.delete(id);
          call?.done(answer.error ? { error: answer.error } : { result: answer.result });
        }
      }
    } catch (error) {
      lost = reasonOf(error);
      if (error instanceof ConnectionError) status = error.status;
    }
    for (const call of done.values()) call.done({ lost, status });
  }
}

function parts(calls: Call[]): Call[][] {
  const all: Call[][] = [];
  let part: Call[] = [];
  let bytes = 0;
  for (const call of calls) {
    const more = Buffer.byteLength(call.params) + 96;
    if (part.length > 0 && (part.length >= BATCH_CALLS_MAX || bytes + more > MESSAGE_BYTES_MAX)) {
      all.push(part);
      part = [];
      bytes = 0;
    }
    part.push(call);
    bytes += more;
  }
  if (part.length > 0) all.push(part);
  return all;
}
