//! The protocols: JSON-RPC over HTTP and WebSocket, streams, the OpenRPC document, webhooks, metrics.

mod a2a;
mod alike;
mod broker;
mod delegation;
mod isolation;
mod metrics;
mod openrpc;
mod protocol;
mod streams;
mod tokens;
mod webhooks;
mod work;
mod worst_inputs;
