/** HTTP between client and server: requests with credentials, and what their answers mean. */

import { ConnectionError, toError, type ErrorObject } from "./errors.js";
import { parse } from "./json.js";

/** A bearer token, or where it comes from; the function is called for every request, so that it may renew the token. */
export type Token = string | (() => string | Promise<string>);

export interface TransportOptions {
  /** Address of the server; `http://127.0.0.1:8000` unless given. */
  url?: string | URL | undefined;
  token?: Token | undefined;
  /** Sent with every request. */
  headers?: Record<string, string> | undefined;
  /**
   * Sends credentials over plain http to other machines too: everybody on the way can read them. For a network that you
   * trust. Unless it is true, they are sent over https and to this machine only.
   */
  insecureToken?: boolean | undefined;
  /** Instead of the global `fetch`. */
  fetch?: typeof fetch | undefined;
}

export interface RequestOptions {
  /** Ends the call; what it rejects with is the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Milliseconds that the answer may take to begin. */
  timeoutMs: number;
  headers?: Record<string, string> | undefined;
}

/** One answer of JSON-RPC. */
export interface Answer {
  id: number | string | null;
  result?: unknown;
  error?: ErrorObject;
}

/** Headers that show who the caller is. */
const CREDENTIALS = new Set(["authorization", "proxy-authorization", "cookie"]);

/** Sends requests to one server. */
export class Transport {
  readonly url: URL;
  readonly #token: Token | undefined;
  readonly #headers: Record<string, string>;
  readonly #fetch: typeof fetch;

  /** @throws TypeError: the URL is none of a server, or credentials would leave this machine unencrypted. */
  constructor(options: TransportOptions) {
    const url = new URL(options.url ?? "http://127.0.0.1:8000");
    if (url.protocol !== "http:" && url.protocol !== "https:") {
      throw new TypeError(`url must begin with http: or https:, not ${url.protocol}`);
    }
    if (url.username !== "" || url.password !== "") {
      throw new TypeError("url must have no credentials: give `token`, or a header");
    }
    if (!url.pathname.endsWith("/")) url.pathname += "/";
    const secret = secretOf(options);
    if (secret !== undefined && url.protocol === "http:" && !isLoopback(url.hostname) && options.insecureToken !== true) {
      throw new TypeError(
        `${secret} is not sent to ${url.host} unencrypted: use an https URL, or give \`insecureToken: true\` in a network that you trust`,
      );
    }
    this.url = url;
    // An empty token is none, as where an environment variable is set to nothing.
    this.#token = options.token === "" ? undefined : options.token;
    this.#headers = options.headers ?? {};
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** Headers with the credentials of now. */
  async headers(): Promise<Record<string, string>> {
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    return token === undefined ? { ...this.#headers } : { ...this.#headers, authorization: `Bearer ${token}` };
  }

  /** Sends a body of JSON-RPC; the answer may be a stream. */
  async post(body: string, options: RequestOptions): Promise<Response> {
    const headers = { "content-type": "application/json", ...(await this.headers()), ...options.headers };
    return this.#send(this.url, { method: "POST", body, headers }, options);
  }

  /** Sends a GET to a path below the address of the server. */
  async get(path: string, options: RequestOptions): Promise<Response> {
    const headers = { ...(await this.headers()), ...options.headers };
    return this.#send(new URL(path, this.url), { method: "GET", headers }, options);
  }

  /** Sends one call and returns its result. */
  async call(method: string, body: string, options: RequestOptions): Promise<unknown> {
    const response = await this.post(body, options);
    const answer = (await readAnswers(response, method, options.signal))[0];
    if (answer === undefined) throw new ConnectionError(`${method}: the server sent no answer`);
    if (answer.error) throw toError(answer.error, method);
    return answer.result;
  }

  async #send(url: URL, init: RequestInit, { signal, timeoutMs }: RequestOptions): Promise<Response> {
    signal?.throwIfAborted();
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    const either = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
    try {
      return await this.#fetch(url, { ...init, signal: either, redirect: "error" });
    } catch (cause) {
      signal?.throwIfAborted();
      const reason = reasonOf(late.signal.aborted ? late.signal.reason : cause);
      throw new ConnectionError(`no answer from ${url.origin}: ${reason}`, { cause });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** What of the options shows who the caller is. */
function secretOf({ token, headers }: TransportOptions): string | undefined {
  if (token !== undefined && token !== "") return "the token";
  const name = Object.keys(headers ?? {}).find((each) => CREDENTIALS.has(each.toLowerCase()));
  return name && `the header \`${name}\``;
}

/**
 * Whether what is sent to a host stays on this machine. Of other names than `localhost` that is not known before they are
 * resolved. `hostname` is as a URL has it: in lower case, addresses in their shortest form.
 */
function isLoopback(hostname: string): boolean {
  if (hostname === "localhost" || hostname === "[::1]") return true;
  return /^127(\.\d+){3}$/.test(hostname) || /^\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\]$/.test(hostname);
}

/** Answers of a body, one for each call of it. Cost: O(bytes). */
export async function readAnswers(response: Response, what: string, signal?: AbortSignal): Promise<Answer[]> {
  let text: string;
  try {
    text = await response.text();
  } catch (cause) {
    signal?.throwIfAborted();
    throw new ConnectionError(`${what}: the connection was lost: ${reasonOf(cause)}`, { cause });
  }
  return parseAnswers(text, what, response.status);
}

/** Answers of a text, one for each call of the body. Cost: O(bytes). */
export function parseAnswers(text: string, what: string, status: number): Answer[] {
  let parsed: unknown;
  if (text === "" && status >= 300) throw notOurs(what, status);
  try {
    parsed = text === "" ? [] : parse(text);
  } catch (cause) {
    throw notOurs(what, status, cause);
  }
  const answers = (Array.isArray(parsed) ? parsed : [parsed]) as Answer[];
  for (const answer of answers) {
    if (!isAnswer(answer)) throw notOurs(what, status);
  }
  return answers;
}

/** Others answer with JSON too, as `{"error": "Forbidden"}`. */
function isAnswer(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return "result" in value || typeof (value as Partial<Answer>).error?.code === "number";
}

function notOurs(what: string, status: number, cause?: unknown): ConnectionError {
  return new ConnectionError(`${what}: HTTP ${status}, which is no answer of taskledger`, { cause, status });
}

/** Whether a request did not even reach the server, so that it may be repeated whatever it does. */
export function isUnsent(error: unknown): boolean {
  for (let e = error; e instanceof Error; e = e.cause) {
    const code = (e as { code?: unknown }).code;
    if (code === "ECONNREFUSED" || code === "ENOTFOUND" || code === "EAI_AGAIN") return true;
  }
  return false;
}

/** The innermost reason, which `fetch` hides in `cause`. */
export function reasonOf(error: unknown): string {
  let innermost = error;
  while (innermost instanceof Error && innermost.cause instanceof Error) innermost = innermost.cause;
  if (!(innermost instanceof Error)) return String(innermost);
  const code = (innermost as { code?: unknown }).code;
  return innermost.message || (typeof code === "string" ? code : innermost.name);
}
