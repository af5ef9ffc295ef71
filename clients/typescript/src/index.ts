/** The client of taskledger, for Node.js 20 or newer and for browsers. Workers are in `taskledger/worker`. */

export { Client, WorkersClient, type CallOptions, type ClientOptions, type Execution } from "./client.js";
export * from "./errors.js";
export type { StreamOptions } from "./streams.js";
export type { Token, TransportOptions } from "./transport.js";
export type * from "./types.js";
export * from "./schedules.js";
export * from "./workflows.js";
