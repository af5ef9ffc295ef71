/** Workers: programs that do the tasks of a taskledger server. For Node.js 20 or newer. */

export type { AnyInput, Context, Handler } from "./attempt.js";
export { AttemptEnded, FinalError, RejectedError, RetryableError, Suspend, type EndReason } from "./errors.js";
export { jsonLog, type Level, type Log, type LogEntry } from "./log.js";
export { Worker, type WorkerEnd, type WorkerOptions } from "./worker.js";
