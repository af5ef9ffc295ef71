//! Agent2Agent 1.0: other agents send messages, which run tasks, and follow what becomes of them.
//!
//! Owns: which message runs what, how runs look as tasks of the protocol, which refusal is which error, the three
//! bindings (JSON-RPC, HTTP+JSON, gRPC) and the card. A task of the protocol is a run. May not touch: the log; HTTP
//! connections, which `transport/http` has. The wire itself is `crates/a2a`.
//! Specification: docs/guides/a2a.md

mod calls;
mod card;
pub(super) mod grpc;
pub(super) mod jsonrpc;
mod mapping;
mod push;
pub(super) mod rest;
mod runs;
mod streams;

pub use mapping::reports::Reports;

pub(super) use calls::{keyed, out_of_time};
pub(super) use card::{CARD_PATH, Cards, KEYS_PATH, RPC_PATH};
pub(super) use streams::{Followed, Told};

use crate::application::{Context, Service};
use crate::clock::SharedClock;
use runs::Runs;
use std::sync::Arc;
use taskledger_a2a::operation::Answer;
use taskledger_a2a::signing::CardKey;
use taskledger_a2a::{Edition, Error, headers};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The extension of this server: ids of nodes in metadata, and progress of nodes in streams.
const NODES: &str = "urn:taskledger:a2a:nodes:v1";
/// The skill of messages that hold tasks.
const TASKS: &str = "tasks.execute";
/// Media types of parts that are taken.
const INPUT_MODES: [&str; 2] = ["text/plain", "application/json"];
/// Media types of parts that are given.
const OUTPUT_MODES: [&str; 2] = ["application/json", "text/plain"];

/// How the protocol is served.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which edition of the specification counts where editions differ.
    pub edition: Edition,
    /// The method that runs messages without tasks; without one they are answered with what would be taken.
    pub text_method: Option<Arc<str>>,
    /// By which keys the card is signed.
    pub keys: Arc<[CardKey]>,
    /// Whether changes are not reported to URLs.
    pub refuses_push: bool,
}

/// The door.
#[derive(Debug)]
pub(super) struct A2a {
    runs: Arc<dyn Runs>,
    clock: SharedClock,
    options: Options,
    /// What a message begins goes on without the connection that it came over.
    detached: TaskTracker,
}

/// How a call came in.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    /// Who calls.
    pub(super) context: Context,
    /// Whether the extension of this server is used.
    pub(super) nodes: bool,
    /// Cancelled when whoever waits has to be sent away.
    pub(super) ending: CancellationToken,
    /// Where an earlier stream has ended.
    pub(super) last_event: Option<Arc<str>>,
}

/// What a call leads to.
#[allow(clippy::large_enum_variant)] // one of them, on its way out
pub(super) enum Outcome {
    /// One answer.
    Answer(Answer),
    /// A stream.
    Stream(Followed),
}

impl A2a {
    /// The extension of this server.
    pub(super) const NODES: &str = NODES;

    pub(super) fn new(
        runs: Arc<Service>,
        clock: SharedClock,
        options: Options,
        detached: TaskTracker,
    ) -> Self {
        Self {
            runs,
            clock,
            options,
            detached,
        }
    }

    pub(super) const fn edition(&self) -> Edition {
        self.options.edition
    }

    /// Checks the version, and returns whether the extension of this server is used.
    ///
    /// # Errors
    /// `VersionNotSupported`.
    pub(super) fn agreed<'h>(
        version: Option<&str>,
        extensions: impl Iterator<Item = &'h str>,
    ) -> Result<bool, Error> {
        headers::served(version)?;
        let announced = headers::announced(extensions);
        let active = headers::activated(&announced, &[NODES], &[])?;
        Ok(!active.is_empty())
    }
}
