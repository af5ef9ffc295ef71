/**
 * A WebSocket client over the upgrade of `node:http`, because the global one of Node.js cannot send credentials.
 * Texts that are sent within one turn of the event loop leave in one write.
 */

import { createHash, randomBytes } from "node:crypto";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { CLOSE, controlFrame, FrameError, FrameReader, PING, PONG, textFrames } from "./frames.js";

/** RFC 6455, section 1.3. */
const ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** How long the other side may take to answer a close. */
const CLOSE_WAIT_MS = 2_000;
/** Bytes of a refusal that are read. */
const REFUSAL_BYTES_MAX = 64 * 1024;
const NOTHING = Buffer.alloc(0);

/** The server answered the upgrade with something else than 101. */
export class UpgradeRefused extends Error {
  constructor(
    readonly status: number,
    readonly body: string,
  ) {
    super(`the server refused the socket with HTTP ${status}`);
  }
}

/** What a socket tells its owner. `closed` comes once, last. */
export interface SocketOwner {
  text(text: string): void;
  closed(code: number, reason: string): void;
}

/**
 * Opens a socket.
 * @throws UpgradeRefused, or the error of the connection.
 */
export function connect(
  url: URL,
  headers: Record<string, string>,
  timeoutMs: number,
): Promise<{ socket: Duplex; head: Buffer }> {
  return new Promise((resolve, reject) => {
    const key = randomBytes(16).toString("base64");
    const send = url.protocol === "https:" || url.protocol === "wss:" ? httpsRequest : httpRequest;
    const address = new URL(url);
    address.protocol = send === httpsRequest ? "https:" : "http:";
    const request = send(address, {
      agent: false,
      headers: {
        ...headers,
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": key,
      },
    });
    const timer = setTimeout(() => request.destroy(new Error(`no socket within ${timeoutMs} ms`)), timeoutMs);
    const failed = (error: Error): void => {
      clearTimeout(timer);
      reject(error);
    };
    request.on("error", failed);
    request.on("response", (response) => {
      readRefusal(response).then((body) => failed(new UpgradeRefused(response.statusCode ?? 0, body)), failed);
    });
    request.on("upgrade", (response: IncomingMessage, socket: Duplex, head: Buffer) => {
      clearTimeout(timer);
      const expected = createHash("sha1").update(key + ACCEPT_SUFFIX).digest("base64");
      if (response.headers["sec-websocket-accept"] !== expected) {
        socket.destroy();
        reject(new UpgradeRefused(response.statusCode ?? 101, "the answer is none to this request"));
        return;
      }
      resolve({ socket, head });
    });
    request.end();
  });
}

async function readRefusal(response: IncomingMessage): Promise<string> {
  response.setEncoding("utf8");
  let body = "";
  for await (const piece of response) {
    body += piece as string;
    if (body.length > REFUSAL_BYTES_MAX) break;
  }
  return body;
}

/** An open socket. */
export class WebSocketConnection {
  readonly #socket: Duplex;
  readonly #owner: SocketOwner;
  readonly #reader: FrameReader;
  #outgoing: string[] = [];
  #isOpen = true;
  #isTold = false;
  #code = 1006;
  #reason = "the connection was lost";
  #lastHeardAt = performance.now();
  #pingedAt = 0;

  constructor({ socket, head }: { socket: Duplex; head: Buffer }, owner: SocketOwner) {
    this.#socket = socket;
    this.#owner = owner;
    this.#reader = new FrameReader({
      text: (text) => owner.text(text),
      control: (opcode, payload) => this.#control(opcode, payload),
    });
    if ("setNoDelay" in socket) (socket as Socket).setNoDelay(true).setTimeout(0);
    if (head.length > 0) socket.unshift(head);
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("end", () => this.#end());
    socket.on("error", (error: Error) => this.#end(error.message));
    socket.on("close", () => this.#end());
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Sends a text with the others of this turn. Dropped when the socket is closed. */
  send(text: string): void {
    if (!this.#isOpen) return;
    if (this.#outgoing.length === 0) setImmediate(() => this.#flush());
    this.#outgoing.push(text);
  }

  /**
   * Pings a side that was silent for `silenceMs`, and gives it up when it stays silent for `answerMs` more. To be
   * called now and then.
   */
  watch(silenceMs: number, answerMs: number): void {
    const now = performance.now();
    if (!this.#isOpen || now - this.#lastHeardAt < silenceMs) return;
    if (this.#pingedAt <= this.#lastHeardAt) {
      this.#pingedAt = now;
      this.#socket.write(controlFrame(PING, NOTHING));
    } else if (now - this.#pingedAt >= answerMs) {
      this.#end("the server does not answer");
    }
  }

  /** Sends what waits, then closes. */
  close(code = 1000): void {
    if (!this.#isOpen) return;
    this.#flush();
    this.#isOpen = false;
    const payload = Buffer.alloc(2);
    payload.writeUInt16BE(code);
    this.#socket.write(controlFrame(CLOSE, payload));
    this.#code = code;
    this.#reason = "closed by this side";
    setTimeout(() => this.#end(), CLOSE_WAIT_MS).unref();
  }

  #flush(): void {
    const texts = this.#outgoing;
    if (texts.length === 0) return;
    this.#outgoing = [];
    if (this.#isOpen) this.#socket.write(textFrames(texts));
  }

  #read(chunk: Buffer): void {
    this.#lastHeardAt = performance.now();
    try {
      this.#reader.push(chunk);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.close(error.code);
      this.#end(error.message);
    }
  }

  #control(opcode: number, payload: Buffer): void {
    if (opcode === PING) {
      if (this.#isOpen) this.#socket.write(controlFrame(PONG, payload));
    } else if (opcode === CLOSE) {
      if (this.#isOpen) {
        this.#code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
        this.#reason = payload.toString("utf8", 2);
        this.#isOpen = false;
        this.#socket.end(controlFrame(CLOSE, payload.subarray(0, 2)));
      }
      this.#end();
    }
  }

  #end(reason?: string): void {
    this.#isOpen = false;
    if (this.#isTold) return;
    this.#isTold = true;
    this.#outgoing = [];
    if (this.#socket.writableEnded) this.#socket.once("finish", () => this.#socket.destroy());
    else this.#socket.destroy();
    this.#owner.closed(this.#code, reason ?? this.#reason);
  }
}
