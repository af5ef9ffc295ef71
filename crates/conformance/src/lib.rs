//! The conformance suite: a client of any server that speaks the protocol, and one check for each
//! clause of the protocol's documents.
//!
//! Owns the clauses (`clauses/`), the probe that their checks work with, and the report. Knows
//! nothing of this server: everything it learns comes over HTTP. The program
//! `taskledger-conformance` runs them, so that other implementations can be looked at too.

mod answer;
mod clause;
mod clauses;
mod document;
mod lives;
mod options;
mod probe;
mod receiver;
mod refusals;
mod report;
mod stream;
mod suite;
mod task_schema;
mod tasks;

pub use answer::{Answer, Reply, RpcError};
pub use clause::{Check, Clause, Evidence, Finding, Level, Outcome, seen};
pub use clauses::all;
pub use document::markdown;
pub use options::{CALL_TIMEOUT, Options, failing_task};
pub use probe::{PATIENCE, Probe};
pub use report::{Line, Report, Verdict};
pub use suite::{CHECK_TIMEOUT, Suite};
pub use task_schema::violations;
pub use tasks::{NewTask, Started, expect_task, is_terminal, text_of};
