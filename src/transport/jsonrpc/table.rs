//! The type of a row in the method table, and the arguments of its handler.

use super::encode::Outcome;
use super::reader::Declared;
use crate::application::Context;
use crate::transport::openrpc::about::About;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;

/// One row of the method table.
pub struct Method<C> {
    /// The exact name. Names that begin with `rpc.` are reserved by JSON-RPC.
    pub name: &'static str,
    /// A short name for people; also in the agent card.
    pub title: &'static str,
    /// One sentence; also in the agent card.
    pub summary: &'static str,
    /// Words to find it by; also in the agent card.
    pub tags: &'static [&'static str],
    /// The parameters, and the code that reads them.
    pub params: Declared,
    /// What a call may change.
    pub changes: Changes,
    /// What the OpenRPC document says of it besides.
    pub about: About,
    /// What is done.
    pub handler: Handler<C>,
}

impl<C> Method<C> {
    /// Whether a call may change something.
    #[must_use]
    pub fn changes_state(&self) -> bool {
        match self.changes {
            Changes::Nothing => false,
            Changes::Flows
            | Changes::Webhooks
            | Changes::Tokens
            | Changes::Secrets
            | Changes::Workflows
            | Changes::Schedules
            | Changes::Claims
            | Changes::Work
            | Changes::Workers
            | Changes::Server => true,
        }
    }

    /// Whether a call without an id is refused: nobody would hear of the leases that it begins.
    #[must_use]
    pub fn needs_answer(&self) -> bool {
        self.changes == Changes::Claims
    }

    /// Whether a call runs to its end when the caller goes away. Whoever is gone can do no work.
    #[must_use]
    pub fn finishes_alone(&self) -> bool {
        self.changes_state() && self.changes != Changes::Claims
    }
}

/// What a call may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// It reads.
    Nothing,
    /// Tasks and runs, by events of their flow, with which an idempotency key is kept.
    Flows,
    /// What is sent to whom. That lies beside the log, and no keys are kept with it.
    Webhooks,
    /// Who may do what. That lies beside the log too.
    Tokens,
    /// Workflow documents, which lie beside the log too.
    Workflows,
    /// Schedules, which lie beside the log too.
    Schedules,
    /// Secrets of tasks, which lie beside the log too.
    Secrets,
    /// Who does a task. A claim that was lost on the way ends by itself.
    Claims,
    /// What came of claimed tasks, under a lease: the first outcome is the only one, so that repeating it needs no
    /// key.
    Work,
    /// Which methods and workers there are. That lies beside the log.
    Workers,
    /// What this server does: whether it begins attempts, which tables it reads. No keys are kept with it; one that is
    /// given is ignored, as by a call that reads.
    Server,
}

/// Turns a call into the text of its result.
pub type Handler<C> = fn(Arc<C>, Call) -> BoxFuture<'static, Outcome>;

/// One call of a known method.
#[derive(Debug)]
pub struct Call {
    /// Parameters by name, not yet checked.
    pub params: Map<String, Value>,
    /// The envelope's `metadata`.
    pub metadata: Option<Map<String, Value>>,
    /// The envelope's `configuration`.
    pub configuration: Option<Value>,
    /// Who calls.
    pub context: Context,
}
