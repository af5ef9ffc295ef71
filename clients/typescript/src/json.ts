/**
 * JSON between the program and the server, without loss.
 *
 * The server keeps integers of 64 bits. A JavaScript number holds integers up to 2^53 - 1 only, so larger ones are read
 * and written as `bigint`. `JSON.stringify` writes a `Map`, a `Set` and the like as `{}`: those are refused.
 */

const INT_MIN = -(2n ** 63n);
const INT_MAX = 2n ** 64n - 1n;
/** Digits from which an integer may not fit into a number. */
const MANY_DIGITS = /\d{16}/;
/** An integer that may need more than 53 bits, of at most 64. */
const LARGE = /^-?\d{16,20}$/;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;

/** Reads JSON; integers that a number cannot hold become `bigint`. @throws SyntaxError. Cost: O(bytes). */
export function parse(text: string): unknown {
  if (!MANY_DIGITS.test(text)) return JSON.parse(text) as unknown;
  const mark = freshMark();
  const marked = withMarks(text, mark);
  if (marked === text) return JSON.parse(text) as unknown;
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  ) as unknown;
}

/** JSON in which integers that a number cannot hold are texts that begin with the mark. */
function withMarks(text: string, mark: string): string {
  let marked = "";
  let copied = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfText(text, at);
    } else if (code === MINUS || isDigit(code)) {
      const begin = at;
      while (isOfNumber(text.charCodeAt(at + 1))) at++;
      const number = text.slice(begin, at + 1);
      if (!LARGE.test(number) || Number.isSafeInteger(Number(number))) continue;
      marked += `${text.slice(copied, begin)}"${mark}${number}"`;
      copied = at + 1;
    }
  }
  return copied === 0 ? text : marked + text.slice(copied);
}

/** Where a text ends that begins at a quote; behind the end if it does not. */
function endOfText(text: string, begin: number): number {
  let at = begin + 1;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) break;
    if (code === BACKSLASH) at++;
  }
  return at;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Whether a character may follow in a number: digits, `+`, `-`, `.`, `e`, `E`. */
function isOfNumber(code: number): boolean {
  return isDigit(code) || code === 0x2b || code === MINUS || code === 0x2e || code === 0x65 || code === 0x45;
}

/**
 * Writes JSON; a `bigint` as the integer that it is. `undefined`: the value has no JSON.
 * @throws TypeError: a value would be lost, or is circular. RangeError: a `bigint` has more than 64 bits. Cost: O(bytes).
 */
export function stringify(value: unknown): string | undefined {
  let json: string | undefined;
  try {
    json = JSON.stringify(value) as string | undefined;
  } catch (error) {
    // A `bigint`, or a fault that comes again.
    if (!(error instanceof TypeError)) throw error;
    return withBigints(value);
  }
  // What has no JSON of its own is written as an empty object, or as one of numbered members.
  if (json !== undefined && (json.includes("{}") || json.includes('{"0":'))) JSON.stringify(value, refuseLoss);
  return json;
}

function withBigints(value: unknown): string | undefined {
  const mark = freshMark();
  const json = JSON.stringify(value, function (this: unknown, name: string, member: unknown): unknown {
    if (typeof member !== "bigint") return refuseLoss(name, member);
    if (member < INT_MIN || member > INT_MAX) {
      throw new RangeError(`\`${name}\` is ${member}n, expected an integer of 64 bits, or text`);
    }
    return mark + String(member);
  }) as string | undefined;
  return json?.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1");
}

/** @throws TypeError when the member has a value whose contents JSON does not have. */
function refuseLoss(name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const tag = Object.prototype.toString.call(value).slice("[object ".length, -1);
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  const isBoxed = tag === "Number" || tag === "String" || tag === "Boolean";
  const isLost = tag === "Map" || tag === "Set" || ArrayBuffer.isView(value) || Object.keys(value).length === 0;
  if (isPlain || isBoxed || !isLost) return value;
  const type = tag === "Object" ? ((value.constructor as { name?: string } | undefined)?.name ?? tag) : tag;
  throw new TypeError(`\`${name}\` is a value of type \`${type}\`, which JSON cannot hold, expected a plain object, an array or text`);
}

/** Text that no other text contains by chance. */
function freshMark(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(36)).join("-") + ":";
}
