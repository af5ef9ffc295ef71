//! Agent2Agent 1.0, and 0.3 where it is switched on (`v03/`): other agents send messages, which run tasks, and follow
//! what becomes of them.
//!
//! Owns: which message runs what, how runs look as tasks of the protocol, which refusal is which error, the three
//! bindings (JSON-RPC, HTTP+JSON, gRPC) and the card. A task of the protocol is a run. May not touch: the log; HTTP
//! connections, which `transport/http` has. The wire itself is `crates/a2a`.
//! Specification: docs/guides/a2a.md

pub(super) mod artifacts;
mod calls;
mod card;
pub(super) mod grpc;
pub(super) mod jsonrpc;
mod mapping;
mod names;
mod options;
mod planning;
mod push;
pub(super) mod rest;
mod runs;
mod streams;
pub(super) mod v03;

pub use mapping::reports::Reports;
pub use names::INPUT_MODES;
pub use options::{CardTexts, Options, TextSkill};

pub(super) use artifacts::CALL as ARTIFACTS_CALL;
pub(super) use calls::{keyed, out_of_time};
pub(super) use card::{CARD_PATH, Cards, KEYS_PATH, RPC_PATH};
pub(super) use streams::{Followed, StreamEvent};

use crate::application::{Context, Service};
use crate::clock::SharedClock;
use card::CardWriter;
use names::{NODES, TASKS};
use runs::Runs;
use std::sync::Arc;
use taskledger_a2a::operation::Answer;
use taskledger_a2a::{Edition, Error, headers};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a client uses beside the protocol.
#[derive(Debug, Clone)]
pub(super) struct Agreed {
    /// Whether it uses the extension of this server.
    pub(super) nodes: bool,
    /// The extensions that are active, as they are answered.
    pub(super) echo: Option<String>,
}

/// The door.
#[derive(Debug)]
pub(super) struct A2a {
    runs: Arc<dyn Runs>,
    clock: SharedClock,
    options: Options,
    cards: CardWriter,
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
    /// Whether it speaks 0.3, and so do those to whom it has changes reported.
    pub(super) v03: bool,
    /// Where an earlier stream has ended.
    pub(super) last_event: Option<Arc<str>>,
}

/// What a call leads to.
#[allow(clippy::large_enum_variant)] // one of them, on its way out
pub(super) enum Outcome {
    /// One answer.
    Answer(Answer),
    Stream(Followed),
}

impl A2a {
    pub(super) fn new(
        runs: Arc<Service>,
        clock: SharedClock,
        options: Options,
        (url, authenticates): (&str, bool),
        detached: TaskTracker,
    ) -> Self {
        Self {
            runs,
            clock,
            cards: CardWriter::new(url, &options, authenticates),
            options,
            detached,
        }
    }

    /// What workers have declared of the method for messages without tasks, in words for people.
    pub(super) fn described(&self) -> Option<Arc<str>> {
        self.runs.described(self.cards.text_method()?)
    }

    /// What is published of the agent. `described`: as [`Self::described`].
    pub(super) fn published(&self, described: Option<&str>) -> Cards {
        self.cards.published(described)
    }

    pub(super) const fn edition(&self) -> Edition {
        self.options.edition
    }

    /// Checks the version and the extensions that a client must use, and returns which it uses.
    ///
    /// # Errors
    /// `VersionNotSupported`, `ExtensionSupportRequired`.
    pub(super) fn agreed<'h>(
        &self,
        version: Option<&str>,
        extensions: impl Iterator<Item = &'h str>,
    ) -> Result<Agreed, Error> {
        headers::served(version)?;
        self.activated(extensions)
    }

    /// Checks the extensions that a client must use, and returns which it uses.
    ///
    /// # Errors
    /// `ExtensionSupportRequired`.
    pub(super) fn activated<'h>(
        &self,
        extensions: impl Iterator<Item = &'h str>,
    ) -> Result<Agreed, Error> {
        let announced = headers::announced(extensions);
        let required: Vec<&str> = self
            .options
            .required_extensions
            .iter()
            .map(|it| &**it)
            .collect();
        let others = required.iter().copied().filter(|it| *it != NODES);
        let known: Vec<&str> = std::iter::once(NODES).chain(others).collect();
        let active = headers::activated(&announced, &known, &required)?;
        Ok(Agreed {
            nodes: active.contains(&NODES),
            echo: (!active.is_empty()).then(|| active.join(", ")),
        })
    }
}
