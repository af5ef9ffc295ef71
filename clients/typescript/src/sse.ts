/**
 * Reading server-sent events from the body of an answer.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */

/** A message of a stream. A message without `data` only moves the place (`id`). */
export interface Message {
  id: string | undefined;
  event: string | undefined;
  data: string | undefined;
  /** Milliseconds to wait before coming back. */
  retry: number | undefined;
}

/** Characters of one message that are gathered; more means that the other side is no such stream. */
const MESSAGE_CHARS_MAX = 256 * 1024 * 1024;

/** Cuts text into messages, however it arrives. */
export class MessageReader {
  #rest = "";
  #lines: string[] = [];
  #chars = 0;

  /** Messages that are complete with this text. */
  push(text: string): Message[] {
    const messages: Message[] = [];
    let all = this.#rest + text;
    // The second half of a line break may come with the next piece.
    const held = all.endsWith("\r") ? "\r" : "";
    if (held) all = all.slice(0, -1);
    let begin = 0;
    for (;;) {
      const end = lineEnd(all, begin);
      if (end < 0) break;
      this.#line(all.slice(begin, end), messages);
      begin = end + (all.startsWith("\r\n", end) ? 2 : 1);
    }
    this.#rest = all.slice(begin) + held;
    if (this.#rest.length + this.#chars > MESSAGE_CHARS_MAX) throw new RangeError("a message of the stream is too long");
    return messages;
  }

  #line(line: string, messages: Message[]): void {
    if (line !== "") {
      this.#chars += line.length;
      this.#lines.push(line);
      return;
    }
    const message = read(this.#lines);
    if (message) messages.push(message);
    this.#lines = [];
    this.#chars = 0;
  }
}

function lineEnd(text: string, from: number): number {
  const feed = text.indexOf("\n", from);
  const before = feed < 0 ? text : text.slice(from, feed);
  const back = before.indexOf("\r", feed < 0 ? from : 0);
  if (back < 0) return feed;
  return feed < 0 ? back : from + back;
}

function read(lines: string[]): Message | undefined {
  const message: Message = { id: undefined, event: undefined, data: undefined, retry: undefined };
  let any = false;
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const begin = colon < 0 ? line.length : colon + (line[colon + 1] === " " ? 2 : 1);
    const value = line.slice(begin);
    any = true;
    if (field === "data") message.data = message.data === undefined ? value : `${message.data}\n${value}`;
    else if (field === "event") message.event = value;
    else if (field === "id" && !value.includes("\0")) message.id = value;
    else if (field === "retry" && /^\d+$/.test(value)) message.retry = Number(value);
  }
  return any ? message : undefined;
}

/**
 * Messages of a body, until it ends. A body that stays silent for `silenceMs` (the server sends something every
 * 15 s) is given up with an error. Leaving the loop cancels the body.
 */
export async function* messages(body: ReadableStream<Uint8Array>, silenceMs: number): AsyncGenerator<Message, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new MessageReader();
  try {
    for (;;) {
      const { done, value } = await within(reader.read(), silenceMs);
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the stream was silent for ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
  }
}
