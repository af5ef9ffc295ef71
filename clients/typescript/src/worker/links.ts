/** The two ways by which claims come: a subscription on a socket, and long polls. */

import { Backoff, sleep } from "../backoff.js";
import { BusyError, ConnectionError, MethodNotFoundError, RpcError, toError } from "../errors.js";
import { parse } from "../json.js";
import { reasonOf, type Answer, type Transport } from "../transport.js";
import type { Claim, Claims } from "../types.js";
import { SocketChannel } from "./channels.js";
import type { Level } from "./log.js";
import type { Posts } from "./posts.js";
import { connect, UpgradeRefused } from "./websocket.js";

const CONNECT_MS = 15_000;
const ANSWER_MS = 35_000;
/** A socket that lived as long was a good one: the next attempt to connect comes at once. */
const GOOD_MS = 5_000;
/** The server pings every 25 s; a socket that was silent for longer is asked. */
const SILENCE_MS = 28_000;
/** What a silent server gets to answer, before its socket is given up: new work comes only where a socket lives. */
const PONG_MS = 10_000;
const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 10_000;
/** A worker that had work once ends when the server has refused it so many times in a row. */
const REFUSALS_MAX = 5;
/** Claims that one poll takes. */
const CLAIMS_MAX = 100;

/** What links need of the worker. */
export interface LinkHost {
  readonly transport: Transport;
  readonly posts: Posts;
  readonly methods: string[];
  readonly name: string;
  readonly concurrency: number;
  readonly leaseSeconds: number;
  /** Aborted when no more claims are wanted. */
  readonly leaving: AbortSignal;
  claimed(claim: Claim): void;
  takenBack(token: string, reason: string): void;
  drain(): void;
  /** A socket is open, and its subscription too. */
  connected(): void;
  /** Attempts that the worker can take now. */
  free(): number;
  /** Resolves when that may have changed. */
  changed(): Promise<void>;
  note(level: Level, message: string, fields?: Record<string, unknown>): void;
}

/** Whether refusals may pass: none does before the first answer, a few do after it, as when a token is replaced. */
class Welcome {
  #wasAnswered = false;
  #refusals = 0;

  /** Whether the server has taken this worker before. */
  get wasAnswered(): boolean {
    return this.#wasAnswered;
  }

  answered(): void {
    this.#wasAnswered = true;
    this.#refusals = 0;
  }

  /** @throws `error` when asking again is of no use. */
  failed(error: unknown): void {
    if (!isRefusal(error)) this.#refusals = 0;
    else if (++this.#refusals >= REFUSALS_MAX || !this.#wasAnswered) throw error;
  }
}

/** Why a link ended: no more claims are wanted, or this way leads nowhere. */
export type LinkEnd = "leaving" | "unsupported";

/** Claims over `/ws`. */
export class SocketLink {
  #channel: SocketChannel | undefined;
  #subscription: string | undefined;
  readonly #welcome = new Welcome();

  constructor(private readonly host: LinkHost) {}

  /** The socket, while one is open and subscribed. */
  get open(): SocketChannel | undefined {
    return this.#channel?.isOpen ? this.#channel : undefined;
  }

  /**
   * Connects, and connects again, until no more claims are wanted.
   * @throws RpcError when the server refuses the very first subscription, or several in a row, as with a revoked token.
   */
  async run(): Promise<LinkEnd> {
    const { host } = this;
    const backoff = new Backoff(RETRY_FIRST_MS, RETRY_MAX_MS);
    // The socket stays open for reports when no more claims are wanted.
    const left = new Promise<{ code: number; reason: string }>((resolve) => {
      host.leaving.addEventListener("abort", () => resolve({ code: 1000, reason: "" }), { once: true });
    });
    while (!host.leaving.aborted) {
      const begun = performance.now();
      let atLeastMs = 0;
      try {
        const { code, reason } = await Promise.race([this.#serve(), left]);
        if (!host.leaving.aborted) host.note("warn", "the socket was closed", { "socket.code": code, "socket.reason": reason });
      } catch (caught) {
        if (isUnsupported(caught)) return "unsupported";
        const error = refusalOf(caught, "work");
        if (host.leaving.aborted) break;
        this.#welcome.failed(error);
        if (error instanceof BusyError) atLeastMs = error.data.retry_after_ms ?? 0;
        host.note("warn", "the server cannot be reached", { "error.message": reasonOf(error) });
      }
      if (host.leaving.aborted) break;
      if (performance.now() - begun >= GOOD_MS) backoff.reset();
      await sleep(Math.max(atLeastMs, backoff.next()), host.leaving).catch(() => {});
    }
    return "leaving";
  }

  /** Asks for no more claims; what was on its way has arrived when it resolves. */
  async unsubscribe(): Promise<void> {
    const subscription = this.#subscription;
    this.#subscription = undefined;
    if (subscription === undefined || !this.open) return;
    await new Promise<void>((resolve) => {
      const params = JSON.stringify({ subscription });
      this.#channel?.call({ method: "unsubscribe", params, done: () => resolve() });
    });
  }

  watch(): void {
    this.#channel?.watch(SILENCE_MS, PONG_MS);
  }

  close(): void {
    this.#channel?.close();
  }

  /** One socket, from its opening to its end. */
  async #serve(): Promise<{ code: number; reason: string }> {
    const { host } = this;
    const url = new URL("ws", host.transport.url);
    const connected = await connect(url, await host.transport.headers(), CONNECT_MS);
    if (host.leaving.aborted) {
      connected.socket.destroy();
      return { code: 1000, reason: "" };
    }
    return new Promise((resolve, reject) => {
      let refusal: unknown;
      const channel = new SocketChannel(
        connected,
        (method, params) => {
          if (method === "work") this.#notified(params);
          else if (method === "end") this.#subscriptionEnded(params);
        },
        (code, reason) => {
          clearTimeout(timer);
          if (refusal === undefined) resolve({ code, reason });
          else reject(refusal);
        },
      );
      const refuse = (error: unknown): void => {
        refusal = error;
        channel.close();
      };
      const timer = setTimeout(() => refuse(new ConnectionError("the subscription was not answered")), ANSWER_MS);
      this.#channel = channel;
      const { methods, name: worker, concurrency: window, leaseSeconds: lease_seconds } = host;
      channel.call({
        method: "work",
        params: JSON.stringify({ methods, worker, window, lease_seconds }),
        done: (outcome) => {
          clearTimeout(timer);
          if ("error" in outcome) refuse(toError(outcome.error, "work"));
          else if ("lost" in outcome && outcome.isUnread) refuse(new ConnectionError(outcome.lost));
          else if ("result" in outcome) this.#subscribed(outcome.result as { subscription: string });
        },
      });
    });
  }

  #subscribed({ subscription }: { subscription: string }): void {
    this.#subscription = subscription;
    this.#welcome.answered();
    this.host.connected();
    if (this.host.leaving.aborted) void this.unsubscribe();
  }

  /** The server gives nothing more through this subscription: a new one comes with a new socket. */
  #subscriptionEnded(params: Record<string, unknown>): void {
    if (params["subscription"] === this.#subscription) this.#channel?.close();
  }

  #notified(params: Record<string, unknown>): void {
    if (params["claim"] !== undefined) this.host.claimed(params["claim"] as Claim);
    const cancel = params["cancel"] as { lease: string; reason: string } | undefined;
    if (cancel !== undefined) this.host.takenBack(cancel.lease, cancel.reason);
    if (params["draining"] === true) this.host.drain();
  }
}

/** Claims over `POST`, one call after the other. */
export class PollLink {
  #ending: AbortController | undefined;
  readonly #welcome = new Welcome();

  constructor(
    private readonly host: LinkHost,
    private readonly waitSeconds: number,
  ) {}

  /**
   * Polls until no more claims are wanted, or for so long.
   * @throws RpcError when the server refuses the very first claim, or several in a row, as with a revoked token.
   */
  async run(forMs: number): Promise<void> {
    const { host } = this;
    const until = performance.now() + forMs;
    const backoff = new Backoff(RETRY_FIRST_MS, RETRY_MAX_MS);
    const stop = (): void => this.#ending?.abort();
    host.leaving.addEventListener("abort", stop);
    try {
      while (!host.leaving.aborted && performance.now() < until) {
        const free = host.free();
        if (free <= 0) {
          await host.changed();
          continue;
        }
        try {
          const { claims, draining } = await this.#claim(Math.min(free, CLAIMS_MAX));
          backoff.reset();
          if (!this.#welcome.wasAnswered) host.connected();
          this.#welcome.answered();
          for (const claim of claims) host.claimed(claim);
          if (draining) host.drain();
        } catch (error) {
          if (host.leaving.aborted) return;
          this.#welcome.failed(error);
          host.note("warn", "the server cannot be reached", { "error.message": reasonOf(error) });
          const atLeastMs = error instanceof BusyError ? (error.data.retry_after_ms ?? 0) : 0;
          await sleep(Math.max(atLeastMs, backoff.next()), host.leaving).catch(() => {});
        }
      }
    } finally {
      host.leaving.removeEventListener("abort", stop);
    }
  }

  async #claim(max: number): Promise<Claims> {
    const { methods, name: worker, leaseSeconds: lease_seconds, posts } = this.host;
    // The first one comes back at once, so that it is known whether this worker is welcome.
    const wait_seconds = this.#welcome.wasAnswered ? this.waitSeconds : 0;
    const params = { methods, worker, max, lease_seconds, wait_seconds };
    const ending = new AbortController();
    this.#ending = ending;
    const timeoutMs = this.waitSeconds * 1000 + ANSWER_MS;
    return (await posts.call("tasks.claim", params, { signal: ending.signal, timeoutMs })) as Claims;
  }
}

/** Whether the server, or what is before it, refuses this caller, and not only now. */
export function isRefusal(error: unknown): boolean {
  if (error instanceof RpcError) return !(error instanceof BusyError || error.code === -32603);
  const status = error instanceof UpgradeRefused || error instanceof ConnectionError ? error.status : undefined;
  return status === 401 || status === 403;
}

/** Whether the server, or something before it, has no sockets for workers. */
function isUnsupported(error: unknown): boolean {
  if (error instanceof UpgradeRefused) return ![401, 403, 421, 429, 500, 502, 503, 504].includes(error.status);
  return error instanceof MethodNotFoundError;
}

/** The error that a refused upgrade was answered with, if it was one of taskledger's. */
export function refusalOf(error: unknown, method: string): unknown {
  if (!(error instanceof UpgradeRefused)) return error;
  try {
    const answer = parse(error.body) as Answer;
    return answer.error ? toError(answer.error, method) : error;
  } catch {
    return error;
  }
}
