/** What handlers return, as JSON that the server can read. */

/** Bytes of JSON in an output that the server takes. */
export const OUTPUT_BYTES_MAX = 1024 * 1024;
/** Levels of objects and arrays in an output, the output being level 1. */
export const OUTPUT_DEPTH_MAX = 100;

/** JSON of an output, or why the server could not read it, with what it takes. */
export type Output = { json: string } | { fault: string };

const LONE_SURROGATE = /(?<!\\)(?:\\\\)*(\\ud[89a-f][0-9a-f]{2})/;

/** JSON of what a handler returned; nothing is an empty object. Cost: O(size). */
export function outputOf(value: unknown): Output {
  if (value === undefined || value === null) return { json: "{}" };
  if (typeof value !== "object" || Array.isArray(value)) return { fault: notAnObject(value) };
  let json: string | undefined;
  try {
    json = JSON.stringify(value) as string | undefined;
    // `null` may stand for a number that JSON does not have.
    if (json?.includes("null")) JSON.stringify(value, finite);
  } catch (error) {
    if (error instanceof RangeError && error.message.includes("stack")) return { fault: tooDeep() };
    return { fault: `the output is no JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  if (!json?.startsWith("{")) return { fault: notAnObject(json === undefined ? undefined : JSON.parse(json)) };
  return checked(json);
}

function checked(json: string): Output {
  const bytes = json.length * 3 <= OUTPUT_BYTES_MAX ? 0 : Buffer.byteLength(json);
  if (bytes > OUTPUT_BYTES_MAX) {
    return { fault: `the output has ${bytes} bytes of JSON: at most ${OUTPUT_BYTES_MAX} are accepted` };
  }
  // `JSON.stringify` writes lone surrogates as escapes, and no others with these letters.
  const lone = json.includes("\\ud") ? LONE_SURROGATE.exec(json) : null;
  if (lone) return { fault: `the output has text with the lone surrogate ${lone[1]}, expected Unicode text` };
  // Shorter ones have not enough brackets.
  if (json.length > 2 * OUTPUT_DEPTH_MAX && depthOf(json) > OUTPUT_DEPTH_MAX) return { fault: tooDeep() };
  return { json };
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Levels of objects and arrays in JSON. */
function depthOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      while (json.charCodeAt(++at) !== QUOTE) if (json.charCodeAt(at) === BACKSLASH) at++;
    } else if (code === 0x7b || code === 0x5b) {
      if (++depth > deepest) deepest = depth;
    } else if (code === 0x7d || code === 0x5d) {
      depth--;
    }
  }
  return deepest;
}

function finite(name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new TypeError(`\`${name}\` is ${value}, expected a finite number`);
  }
  return value;
}

function tooDeep(): string {
  return `the output is nested too deep: at most ${OUTPUT_DEPTH_MAX} levels are accepted`;
}

function notAnObject(value: unknown): string {
  const kind = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  return `the handler returned a value of type \`${kind}\`, expected an object`;
}
