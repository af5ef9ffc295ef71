//! The doors: JSON-RPC over HTTP and WebSocket, streams, the OpenRPC document, webhooks, metrics.

mod alike;
mod metrics;
mod openrpc;
mod protocol;
mod streams;
mod webhooks;
