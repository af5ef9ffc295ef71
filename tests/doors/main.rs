//! The doors: JSON-RPC over HTTP and WebSocket, streams, the OpenRPC document, webhooks.

mod openrpc;
mod protocol;
mod streams;
mod webhooks;
