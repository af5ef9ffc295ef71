/** What a worker logs: entries with a sentence and dotted fields, never inputs, outputs or tokens. */

export type Level = "debug" | "info" | "warn" | "error";

/** One entry. */
export interface LogEntry {
  level: Level;
  message: string;
  [field: string]: unknown;
}

export type Log = (entry: LogEntry) => void;

const ORDER: Record<Level, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Writes entries from a level on to stderr, as lines of JSON. */
export function jsonLog(from: Level = "info"): Log {
  return (entry) => {
    if (ORDER[entry.level] < ORDER[from]) return;
    process.stderr.write(`${JSON.stringify({ timestamp: new Date().toISOString(), ...entry })}\n`);
  };
}
