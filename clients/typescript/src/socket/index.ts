/**
 * Runs over one socket, for programs in Node.js 20 or newer that start many and wait for each of them.
 *
 * @packageDocumentation
 */

export { SocketClient, type Ran, type RunOptions } from "./client.js";
