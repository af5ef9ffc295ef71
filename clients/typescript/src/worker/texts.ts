/** Texts as the server takes them: in UTF-8, and no longer than it says. */

/** Half of a character of UTF-16: no text in UTF-8 can have it, and the server refuses a whole message with one. */
const LONE_SURROGATES = /\p{Surrogate}/gu;

/** The text with U+FFFD in place of each lone surrogate. */
export function wellFormed(text: string): string {
  return text.replace(LONE_SURROGATES, "\ufffd");
}

/** The beginning of a text: so many characters (Unicode scalar values) at most. */
export function cutChars(text: string, max: number): string {
  // Neither half of a pair is left alone: the iterator of a string gives whole characters.
  const short = text.length <= max ? text : [...text.slice(0, max * 2)].slice(0, max).join("");
  return wellFormed(short);
}

/** The beginning of a text: so many bytes of UTF-8 at most, ending with a whole character. */
export function cutBytes(text: string, max: number): string {
  if (text.length * 3 <= max) return wellFormed(text);
  const bytes = Buffer.from(text.slice(0, max));
  if (bytes.length <= max) return wellFormed(text.slice(0, max));
  let end = max;
  while ((bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}

/** What an error says; anything can be thrown. */
export function messageOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.message || error.name) : String(error);
  } catch {
    return "the handler threw what has no text";
  }
}
