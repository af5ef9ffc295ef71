//! A client of Agent2Agent 1.0, for any agent that speaks it over JSON-RPC or HTTP+JSON.
//!
//! Owns: reading a card and choosing how its agent is called ([`Agent`]), the calls, reading streams within limits,
//! resuming them ([`Agent::converse`], [`Agent::follow`]), and what errors mean. An agent is a stranger: nothing that
//! it sends is held without a limit, and nothing that it names is called but through the port [`Http`], where
//! whoever uses this crate decides which addresses may be called. May not touch: connections, ids, any storage.

mod agent;
mod binding;
mod error;
mod follow;
pub mod http;
mod seen;
mod stream;

pub use agent::{Agent, AgentOptions, Binding, CARD_PATH, NODES};
pub use error::{AgentError, Error};
pub use follow::{Retry, Turn, Unwatched, Watcher, question_id};
pub use http::Http;
pub use seen::{Seen, TASK_BYTES_MAX};
pub use stream::{EVENT_BYTES_MAX, Event, Events, SILENCE_MAX};

/// Bytes of a card. Those in the wild have some thousand.
pub const CARD_BYTES_MAX: usize = 256 * 1024;
/// Bytes of an answer that is no stream: what gRPC clients take, too.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
