// A server for the tests of workers: as much of the protocol as they need, and ways to misbehave.
import { createHash } from "node:crypto";
import { createServer } from "node:http";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const REVOKED = { code: -32004, message: "Unauthorized", data: { errors: [] } };

/** Frames as a server writes them. */
export function frame(opcode, payload, isLast = true) {
  const bytes = Buffer.from(payload);
  const first = (isLast ? 0x80 : 0) | opcode;
  if (bytes.length < 126) return Buffer.concat([Buffer.from([first, bytes.length]), bytes]);
  if (bytes.length < 65536) {
    const head = Buffer.from([first, 126, 0, 0]);
    head.writeUInt16BE(bytes.length, 2);
    return Buffer.concat([head, bytes]);
  }
  const head = Buffer.alloc(10);
  head[0] = first;
  head[1] = 127;
  head.writeBigUInt64BE(BigInt(bytes.length), 2);
  return Buffer.concat([head, bytes]);
}

/** Frames as a client writes them: `[opcode, payload]`, and what is left over. */
export function unframe(bytes) {
  const frames = [];
  let at = 0;
  for (;;) {
    if (bytes.length - at < 2) break;
    if (!(bytes[at + 1] & 0x80)) throw new Error("a client masks");
    let length = bytes[at + 1] & 0x7f;
    let head = 2;
    if (length === 126) (head = 4), bytes.length - at >= 4 && (length = bytes.readUInt16BE(at + 2));
    else if (length === 127) (head = 10), bytes.length - at >= 10 && (length = Number(bytes.readBigUInt64BE(at + 2)));
    const begin = at + head + 4;
    if (bytes.length < begin || bytes.length < begin + length) break;
    const payload = Buffer.from(bytes.subarray(begin, begin + length));
    for (let i = 0; i < length; i++) payload[i] ^= bytes[begin - 4 + (i & 3)];
    frames.push([bytes[at] & 0x0f, payload]);
    at = begin + length;
  }
  return [frames, bytes.subarray(at)];
}

export class FakeServer {
  constructor(options = {}) {
    /** `sockets: false`: `/ws` is not there. */
    this.options = { sockets: true, leaseSeconds: 60, ...options };
    this.offers = [];
    /** token -> {task, attempt, subscription, ended, cancelled} */
    this.leases = new Map();
    /** [method, params, via] of every call. */
    this.calls = [];
    this.outcomes = new Map();
    this.sockets = new Set();
    this.subscriptions = new Map();
    /** Method -> error to answer with, or "hang", or "drop"; used up one by one. */
    this.faults = new Map();
    this.polls = [];
    this.waiters = [];
    /** `[progress, message]` of every report that was recorded. */
    this.progress = [];
    /** Nobody's token holds. */
    this.revoked = false;
    /** Sockets are given nothing before a call comes over one. */
    this.unheard = false;
    this.next = 1;
    this.messages = 0;
  }

  async start(port = 0) {
    this.server = createServer((request, response) => this.#http(request, response));
    this.server.on("upgrade", (request, socket) => this.#upgrade(request, socket));
    this.server.keepAliveTimeout = 1000;
    await new Promise((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    this.port = this.server.address().port;
    this.url = `http://127.0.0.1:${this.port}`;
    return this;
  }

  async stop() {
    this.cut();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** From now on nobody's token holds. */
  revoke() {
    this.revoked = true;
    for (const socket of this.sockets) socket.end(frame(8, Buffer.from([0x11, 0x31])));
    for (const answer of this.polls.splice(0)) answer({ claims: [] });
  }

  /** Cuts all sockets. */
  cut() {
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
    this.subscriptions.clear();
  }

  offer(method, input = {}, id = `task-${this.next++}`) {
    this.offers.push({ id, method, input, attempt: 1 });
    this.#deliver();
    return id;
  }

  cancel(id, reason = "cancelled") {
    for (const [token, lease] of this.leases) {
      if (lease.task.id !== id || lease.ended) continue;
      lease.cancelled = reason;
      const subscription = this.subscriptions.get(lease.subscription);
      subscription?.send({ jsonrpc: "2.0", method: "work", params: { subscription: lease.subscription, cancel: { task_id: id, lease: token, reason } } });
    }
  }

  /** The lease of a task has ended: its subscription has a place for another one. */
  expire(id) {
    for (const lease of this.leases.values()) {
      if (lease.task.id !== id || lease.ended || lease.lost) continue;
      lease.lost = true;
      this.#free(lease);
    }
  }

  drain() {
    this.draining = true;
    for (const [subscription, { send }] of this.subscriptions) send({ jsonrpc: "2.0", method: "work", params: { subscription, draining: true } });
    for (const answer of this.polls.splice(0)) answer({ claims: [], draining: true });
  }

  /** Waits until `check` holds after some call. */
  async until(check, ms = 20_000) {
    const end = performance.now() + ms;
    while (!check()) {
      if (performance.now() > end) throw new Error(`waited in vain for ${check}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  called(method) {
    return this.calls.filter(([name]) => name === method);
  }

  #claim(task, subscription, leaseSeconds) {
    const token = `lease ${this.next++} "é"`;
    this.leases.set(token, { task, subscription });
    return {
      task: { id: task.id, name: task.id, status: "in_progress", schemas: { method: task.method }, inputs: task.input },
      input: task.input,
      context: { root_task_id: task.id, run_id: "run", user_id: null, deadline: null, timeout_seconds: null },
      lease: { token, attempt: task.attempt, expires_at: new Date().toISOString(), lease_seconds: leaseSeconds },
    };
  }

  #deliver() {
    for (const [name, subscription] of this.unheard ? [] : this.subscriptions) {
      while (subscription.open < subscription.window) {
        const index = this.offers.findIndex((task) => subscription.methods.includes(task.method));
        if (index < 0) break;
        const [task] = this.offers.splice(index, 1);
        subscription.open++;
        const claim = this.#claim(task, name, this.options.leaseSeconds);
        subscription.send({ jsonrpc: "2.0", method: "work", params: { subscription: name, claim } });
      }
    }
    if (this.offers.length > 0) for (const poll of this.polls.splice(0)) poll();
  }

  #end(token, outcome) {
    const lease = this.leases.get(token);
    const key = JSON.stringify(outcome);
    if (lease?.ended === key) return { task_id: lease.task.id, status: lease.status };
    if (!lease || lease.ended || lease.cancelled || lease.lost) {
      if (lease?.subscription && lease.cancelled && !lease.freed) (lease.freed = true), this.#free(lease);
      const reason = !lease ? "unknown" : lease.ended ? "ended" : lease.cancelled ? "cancelled" : "lost";
      throw { code: -31010, message: "Lease is not held", data: { task_id: lease?.task.id, reason, errors: [] } };
    }
    lease.ended = key;
    lease.status = outcome[0] === "complete" ? "completed" : outcome[0] === "fail" && !outcome[2] ? "failed" : "pending";
    if (outcome[0] !== "release") this.outcomes.set(lease.task.id, [...(this.outcomes.get(lease.task.id) ?? []), outcome]);
    else if (!this.options.keepReleased) this.offers.push({ ...lease.task, attempt: lease.task.attempt + 1 });
    this.#free(lease);
    return { task_id: lease.task.id, status: lease.status };
  }

  #free(lease) {
    const subscription = this.subscriptions.get(lease.subscription);
    if (subscription) subscription.open--;
    setImmediate(() => this.#deliver());
  }

  /** The result of a call, at once or later. */
  #result(method, params, connection) {
    switch (method) {
      case "work": {
        const subscription = `s${this.next++}`;
        this.subscriptions.set(subscription, { methods: params.methods, window: params.window, open: 0, send: connection.send, socket: connection.socket });
        setImmediate(() => this.#deliver());
        if (this.draining) setImmediate(() => this.drain());
        return { subscription };
      }
      case "unsubscribe":
        this.subscriptions.delete(params.subscription);
        return { success: true };
      case "tasks.claim": {
        if (this.draining) return { claims: [], draining: true };
        const claims = [];
        while (claims.length < (params.max ?? 1)) {
          const index = this.offers.findIndex((task) => params.methods.includes(task.method));
          if (index < 0) break;
          claims.push(this.#claim(this.offers.splice(index, 1)[0], undefined, this.options.leaseSeconds));
        }
        if (claims.length > 0) return { claims };
        return new Promise((resolve) => {
          const wake = (result) => (clearTimeout(timer), resolve(result ?? this.#result(method, params, connection)));
          const timer = setTimeout(() => {
            this.polls = this.polls.filter((poll) => poll !== wake);
            resolve({ claims: [] });
          }, (params.wait_seconds ?? 0) * 1000).unref();
          this.polls.push(wake);
        });
      }
      case "tasks.renew": {
        const lease = this.leases.get(params.lease);
        if (!lease || lease.ended || lease.lost) {
          throw { code: -31010, message: "Lease is not held", data: { reason: lease?.ended ? "ended" : "lost", errors: [] } };
        }
        // Once a second, as the real one does.
        if (params.progress !== undefined && performance.now() - (lease.toldAt ?? -Infinity) >= 1000) {
          lease.toldAt = performance.now();
          this.progress.push([params.progress, params.message]);
        }
        const cancelled = lease.cancelled ? { cancel_requested: true, reason: lease.cancelled } : { cancel_requested: false };
        return { expires_at: new Date().toISOString(), ...cancelled };
      }
      case "tasks.complete":
        if (params.output.refuse) {
          throw { code: -32602, message: "Invalid params", data: { errors: [{ field: "output", reason: "too odd" }] } };
        }
        return this.#end(params.lease, ["complete", params.output]);
      case "tasks.fail":
        return this.#end(params.lease, params.rejected ? ["reject", params.error] : ["fail", params.error, params.retryable]);
      case "tasks.suspend":
        return this.#end(params.lease, ["suspend", params.request]);
      case "tasks.release":
        return this.#end(params.lease, ["release"]);
      case "tasks.sibling_output":
        if (params.name !== "fetch") {
          throw { code: -32602, message: "Invalid params", data: { errors: [{ field: "name", reason: "No sibling has this name" }] } };
        }
        return { task_id: "f", name: "fetch", status: "completed", output: { n: 7 } };
      case "workers.declare":
        return { ...params, declared: true };
      default:
        if (this.options.results?.[method]) return this.options.results[method](params, connection);
        throw { code: -32601, message: "Method not found", data: { errors: [] } };
    }
  }

  /** The answer to a call; `undefined` for none at all. */
  async #answer(call, connection) {
    if (connection.via === "post" && this.revoked) return { jsonrpc: "2.0", error: REVOKED, id: null };
    this.calls.push([call.method, call.params, connection.via, call.metadata]);
    const fault = this.faults.get(call.method)?.shift();
    if (fault === "hang") return new Promise(() => {});
    if (fault === "drop") return void connection.socket.destroy();
    try {
      if (fault && fault !== "drop after") throw fault;
      const result = await this.#result(call.method, call.params, connection);
      if (fault === "drop after") return void connection.socket.destroy();
      return { jsonrpc: "2.0", result, id: call.id };
    } catch (error) {
      if (error instanceof Error) throw error;
      return { jsonrpc: "2.0", error, id: call.id };
    }
  }

  async #body(text, connection) {
    // The real one reads no lone surrogates, and does not say which call had them.
    if (/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(text)) {
      return { jsonrpc: "2.0", error: { code: -32700, message: "Parse error", data: { errors: [] } }, id: null };
    }
    const parsed = JSON.parse(text);
    if (!Array.isArray(parsed)) return this.#answer(parsed, connection);
    const answers = [];
    for (const call of parsed) answers.push(await this.#answer(call, connection));
    return answers;
  }

  #http(request, response) {
    let text = "";
    request.setEncoding("utf8");
    request.on("data", (piece) => (text += piece));
    request.on("end", async () => {
      if (this.options.http?.(request, response, text)) return;
      const answer = await this.#body(text, { via: "post", socket: request.socket, request });
      if (answer === undefined) return;
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(answer));
    });
  }

  #upgrade(request, socket) {
    socket.on("error", () => {});
    this.upgrades = (this.upgrades ?? 0) + 1;
    this.authorization = request.headers.authorization;
    const refusal = this.revoked
      ? `HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n${JSON.stringify({ jsonrpc: "2.0", error: REVOKED, id: null })}`
      : this.options.refuse?.(request);
    if (!this.options.sockets || refusal) {
      socket.end(refusal ?? "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
      return;
    }
    const accept = createHash("sha1").update(request.headers["sec-websocket-key"] + GUID).digest("base64");
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`);
    socket.setNoDelay(true);
    this.sockets.add(socket);
    const send = (message) => socket.writable && socket.write(frame(1, JSON.stringify(message)));
    let rest = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      const [frames, left] = unframe(Buffer.concat([rest, chunk]));
      rest = left;
      for (const [opcode, payload] of frames) {
        if (opcode === 8) return socket.end(frame(8, payload));
        if (opcode === 10) this.ponged = true;
        if (opcode !== 1) continue;
        this.messages++;
        if (payload.length > 64 * 1024) return socket.destroy();
        if (this.unheard) (this.unheard = false), this.#deliver();
        this.#body(payload.toString(), { via: "socket", send, socket }).then((answer) => answer && send(answer));
      }
    });
    socket.on("close", () => {
      this.sockets.delete(socket);
      for (const [name, subscription] of this.subscriptions) if (subscription.socket === socket) this.subscriptions.delete(name);
    });
  }
}
