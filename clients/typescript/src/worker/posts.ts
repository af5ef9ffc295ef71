/** Requests over `node:http`, with connections that are kept: several times cheaper than `fetch`. */

import { Agent as HttpAgent, request as httpRequest, type ClientRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { ConnectionError, toError } from "../errors.js";
import { stringify } from "../json.js";
import { parseAnswers, reasonOf, type Answer, type Transport } from "../transport.js";

/** Connections that are kept for the next request. */
const FREE_SOCKETS_MAX = 32;

export interface PostOptions {
  /** Milliseconds that the whole answer may take. */
  timeoutMs: number;
  /** For a signal that lives no longer than the request. */
  signal?: AbortSignal | undefined;
}

/** Sends bodies of JSON-RPC to one server. */
export class Posts {
  readonly #agent: HttpAgent;
  readonly #request: typeof httpRequest;

  constructor(private readonly transport: Transport) {
    const isTls = transport.url.protocol === "https:";
    this.#request = isTls ? httpsRequest : httpRequest;
    const options = { keepAlive: true, maxFreeSockets: FREE_SOCKETS_MAX, scheduling: "lifo" as const };
    this.#agent = isTls ? new HttpsAgent(options) : new HttpAgent(options);
  }

  /**
   * The answers to a body, one for each of its calls.
   * @throws ConnectionError
   */
  async send(what: string, body: string, options: PostOptions): Promise<Answer[]> {
    const headers = await this.transport.headers();
    for (let again = false; ; again = true) {
      try {
        const { status, text } = await this.#once(headers, body, options);
        return parseAnswers(text, what, status);
      } catch (cause) {
        if (cause instanceof ConnectionError) throw cause;
        // A kept connection that the server closed at that moment. All calls of a worker may be repeated.
        if (cause instanceof Stale && !again) continue;
        options.signal?.throwIfAborted();
        throw new ConnectionError(`${what}: ${reasonOf(cause)}`, { cause });
      }
    }
  }

  /** The result of a call. */
  async call(method: string, params: unknown, options: PostOptions): Promise<unknown> {
    const body = stringify({ jsonrpc: "2.0", id: 1, method, params }) ?? "";
    const answer = (await this.send(method, body, options))[0];
    if (answer === undefined) throw new ConnectionError(`${method}: the server sent no answer`);
    if (answer.error) throw toError(answer.error, method);
    return answer.result;
  }

  /** Closes the connections that are kept. */
  close(): void {
    this.#agent.destroy();
  }

  #once(headers: Record<string, string>, body: string, { timeoutMs, signal }: PostOptions): Promise<Received> {
    return new Promise((resolve, reject) => {
      const request: ClientRequest = this.#request(this.transport.url, {
        method: "POST",
        agent: this.#agent,
        headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body), ...headers },
        ...(signal ? { signal } : {}),
      });
      const timer = setTimeout(() => request.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      const failed = (error: Error & { code?: string }): void => {
        clearTimeout(timer);
        const isStale = request.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
        reject(isStale ? new Stale(error.message, { cause: error }) : error);
      };
      request.on("error", failed);
      request.on("response", (response) => {
        read(response).then((text) => {
          clearTimeout(timer);
          resolve({ status: response.statusCode ?? 0, text });
        }, failed);
      });
      request.end(body);
    });
  }
}

/** The server closed a kept connection. */
class Stale extends Error {}

interface Received {
  status: number;
  text: string;
}

function read(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.on("end", () => resolve((chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)).toString("utf8")));
    response.on("error", reject);
    response.on("aborted", () => reject(new Error("the answer broke off")));
  });
}
