/** Frames of WebSocket (RFC 6455, sections 5.2 and 5.3), as a client writes and reads them. */

import { randomFillSync } from "node:crypto";

export const CONTINUATION = 0x0;
export const TEXT = 0x1;
export const BINARY = 0x2;
export const CLOSE = 0x8;
export const PING = 0x9;
export const PONG = 0xa;

/** Bytes of a message that is taken; the server sends at most a tree of 64 MiB. */
const MESSAGE_BYTES_MAX = 128 * 1024 * 1024;

/** What breaks the protocol, with the code to close with. */
export class FrameError extends Error {
  constructor(
    message: string,
    readonly code: number,
  ) {
    super(message);
  }
}

/** What a reader hands over. A text of several frames comes whole. */
export interface FrameSink {
  text(text: string): void;
  control(opcode: number, payload: Buffer): void;
}

/** Cuts bytes into messages, however they arrive. Cost: O(bytes). */
export class FrameReader {
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Bytes that are needed before it is worth looking again. */
  #needed = 2;
  #parts: Buffer[] | undefined;
  #partsBytes = 0;

  constructor(private readonly sink: FrameSink) {}

  /** @throws {@link FrameError} */
  push(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes < this.#needed) {
      this.#chunks.push(chunk);
      return;
    }
    let all = chunk;
    if (this.#chunks.length > 0) {
      this.#chunks.push(chunk);
      all = Buffer.concat(this.#chunks, this.#bytes);
      this.#chunks = [];
    }
    let at = 0;
    for (;;) {
      const frame = this.#frame(all, at);
      if (frame < 0) break;
      at = frame;
    }
    this.#bytes = all.length - at;
    if (this.#bytes > 0) this.#chunks = [all.subarray(at)];
  }

  /** Reads one frame; the offset behind it, or -1 when it is not complete. */
  #frame(all: Buffer, at: number): number {
    const there = all.length - at;
    if (there < 2) return this.#wait(2);
    const first = all[at]!;
    const second = all[at + 1]!;
    if (first & 0x70) throw new FrameError("reserved bits are set", 1002);
    if (second & 0x80) throw new FrameError("a server does not mask", 1002);
    let length = second & 0x7f;
    let head = 2;
    if (length === 126) {
      head = 4;
      if (there < head) return this.#wait(head);
      length = all.readUInt16BE(at + 2);
    } else if (length === 127) {
      head = 10;
      if (there < head) return this.#wait(head);
      const long = all.readBigUInt64BE(at + 2);
      if (long > BigInt(MESSAGE_BYTES_MAX)) throw new FrameError("a message is too large", 1009);
      length = Number(long);
    }
    const begin = at + head;
    const end = begin + length;
    if (all.length < end) return this.#wait(head + length);
    this.#needed = 2;
    this.#take(first & 0x0f, (first & 0x80) !== 0, all, begin, end);
    return end;
  }

  #wait(bytes: number): number {
    this.#needed = bytes;
    return -1;
  }

  #take(opcode: number, isLast: boolean, all: Buffer, begin: number, end: number): void {
    if (opcode >= CLOSE) {
      if (!isLast || end - begin > 125) throw new FrameError("a control frame is too long or in parts", 1002);
      this.sink.control(opcode, Buffer.from(all.subarray(begin, end)));
      return;
    }
    if (opcode === BINARY) throw new FrameError("text messages only", 1003);
    if ((opcode === TEXT) === (this.#parts !== undefined)) throw new FrameError("frames out of order", 1002);
    if (opcode !== TEXT && opcode !== CONTINUATION) throw new FrameError("unknown kind of frame", 1002);
    if (opcode === TEXT && isLast) {
      this.sink.text(all.toString("utf8", begin, end));
      return;
    }
    this.#parts ??= [];
    this.#parts.push(Buffer.from(all.subarray(begin, end)));
    this.#partsBytes += end - begin;
    if (this.#partsBytes > MESSAGE_BYTES_MAX) throw new FrameError("a message is too large", 1009);
    if (isLast) {
      const whole = Buffer.concat(this.#parts, this.#partsBytes);
      this.#parts = undefined;
      this.#partsBytes = 0;
      this.sink.text(whole.toString("utf8"));
    }
  }
}

/** Random bytes for masks, gathered because asking for four at a time is slow. */
const masks = Buffer.alloc(4096);
let masksUsed = masks.length;

/** Texts as masked frames, one behind the other, in one buffer. Cost: O(bytes). */
export function textFrames(texts: readonly string[]): Buffer {
  let total = 0;
  const lengths = new Array<number>(texts.length);
  for (let i = 0; i < texts.length; i++) {
    const length = Buffer.byteLength(texts[i]!);
    lengths[i] = length;
    total += headBytes(length) + length;
  }
  const out = Buffer.allocUnsafe(total);
  let at = 0;
  for (let i = 0; i < texts.length; i++) {
    const length = lengths[i]!;
    const mask = head(out, at, TEXT, length);
    at += headBytes(length);
    out.write(texts[i]!, at, length, "utf8");
    masked(out, at, length, mask);
    at += length;
  }
  return out;
}

/** A control frame. */
export function controlFrame(opcode: number, payload: Buffer): Buffer {
  const out = Buffer.allocUnsafe(6 + payload.length);
  const mask = head(out, 0, opcode, payload.length);
  payload.copy(out, 6);
  masked(out, 6, payload.length, mask);
  return out;
}

function headBytes(length: number): number {
  return length < 126 ? 6 : length < 65_536 ? 8 : 14;
}

/** Writes a head; the place of its mask among {@link masks}. */
function head(out: Buffer, at: number, opcode: number, length: number): number {
  out[at] = 0x80 | opcode;
  let next = at + 2;
  if (length < 126) {
    out[at + 1] = 0x80 | length;
  } else if (length < 65_536) {
    out[at + 1] = 0x80 | 126;
    next = out.writeUInt16BE(length, next);
  } else {
    out[at + 1] = 0x80 | 127;
    next = out.writeBigUInt64BE(BigInt(length), next);
  }
  if (masksUsed >= masks.length) {
    randomFillSync(masks);
    masksUsed = 0;
  }
  masks.copy(out, next, masksUsed, masksUsed + 4);
  masksUsed += 4;
  return masksUsed - 4;
}

function masked(out: Buffer, at: number, length: number, mask: number): void {
  const [a, b, c, d] = [masks[mask]!, masks[mask + 1]!, masks[mask + 2]!, masks[mask + 3]!];
  const end = at + length;
  const whole = at + (length & ~3);
  let i = at;
  for (; i < whole; i += 4) {
    out[i]! ^= a;
    out[i + 1]! ^= b;
    out[i + 2]! ^= c;
    out[i + 3]! ^= d;
  }
  if (i < end) out[i]! ^= a;
  if (i + 1 < end) out[i + 1]! ^= b;
  if (i + 2 < end) out[i + 2]! ^= c;
}
