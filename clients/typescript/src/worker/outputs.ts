/** What handlers return and ask, as JSON that the server can read. */

import { stringify } from "../json.js";
import { messageOf } from "./texts.js";

/** Bytes of JSON in an output that the server takes. */
export const OUTPUT_BYTES_MAX = 1024 * 1024;
/** Bytes of JSON in a question that the server takes. */
export const QUESTION_BYTES_MAX = 64 * 1024;
/** Levels of objects and arrays in an output or a question, itself being level 1. */
export const DEPTH_MAX = 100;

/** JSON of an object, or why the server could not read it, with what it takes. */
export type Checked = { json: string } | { fault: string };

/** What is checked, in the words of faults. */
interface Kind {
  name: "output" | "question";
  /** Stands before what was found in place of an object. */
  found: string;
  bytesMax: number;
}

const OUTPUT: Kind = { name: "output", found: "the handler returned", bytesMax: OUTPUT_BYTES_MAX };
const QUESTION: Kind = { name: "question", found: "the question is", bytesMax: QUESTION_BYTES_MAX };

const LONE_SURROGATE = /(?<!\\)(?:\\\\)*(\\ud[89a-f][0-9a-f]{2})/;

/** JSON of what a handler returned; nothing is an empty object. Never throws. Cost: O(size). */
export function outputOf(value: unknown): Checked {
  return value === undefined || value === null ? { json: "{}" } : jsonOf(value, OUTPUT);
}

/** JSON of what a handler asks a person. Never throws. Cost: O(size). */
export function questionOf(request: unknown): Checked {
  return jsonOf(request, QUESTION);
}

function jsonOf(value: unknown, kind: Kind): Checked {
  let json: string | undefined;
  try {
    if (typeof value !== "object" || Array.isArray(value)) return notAnObject(value, kind);
    json = stringify(value);
    // `null` may stand for a number that JSON does not have.
    if (json?.includes("null")) JSON.stringify(value, finite);
  } catch (error) {
    const said = messageOf(error);
    if (error instanceof RangeError && said.includes("stack")) return tooDeep(kind);
    return { fault: `the ${kind.name} is no JSON: ${said}` };
  }
  if (!json?.startsWith("{")) return notAnObject(json === undefined ? undefined : JSON.parse(json), kind);
  return checked(json, kind);
}

function checked(json: string, kind: Kind): Checked {
  const bytes = json.length * 3 <= kind.bytesMax ? 0 : Buffer.byteLength(json);
  if (bytes > kind.bytesMax) {
    return { fault: `the ${kind.name} has ${bytes} bytes of JSON: at most ${kind.bytesMax} are accepted` };
  }
  // `JSON.stringify` writes lone surrogates as escapes, and no others with these letters.
  const lone = json.includes("\\ud") ? LONE_SURROGATE.exec(json) : null;
  if (lone) return { fault: `the ${kind.name} has text with the lone surrogate ${lone[1]}, expected Unicode text` };
  // Shorter ones have not enough brackets.
  if (json.length > 2 * DEPTH_MAX && depthOf(json) > DEPTH_MAX) return tooDeep(kind);
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
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new TypeError(`\`${name}\` is ${value}, expected a finite number`);
  }
  return value;
}

function tooDeep(kind: Kind): Checked {
  return { fault: `the ${kind.name} is nested too deep: at most ${DEPTH_MAX} levels are accepted` };
}

function notAnObject(value: unknown, { found }: Kind): Checked {
  const type = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  return { fault: `${found} a value of type \`${type}\`, expected an object` };
}
