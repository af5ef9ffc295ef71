//! The doors: JSON-RPC over HTTP and WebSocket, streams, the OpenRPC document, webhooks.

mod alike;
mod isolation;
mod openrpc;
mod protocol;
mod streams;
mod tokens;
mod webhooks;
