//! The rules: everything that decides what may happen to a flow of tasks, and nothing else. Everything that decides
//! what may happen to a flow of tasks, and nothing else.
//!
//! Owns: the task specification, the state machine, the dependency graph, the decisions
//! (`flow::decide`), the scheduling rules (`schedule`), and the stored form of events (`codec`).
//! May not touch: a clock, randomness, sockets, files, databases, `async`. A rule that needs a
//! fact (the time, an id, which executors exist) receives it with the command.
//! Data comes in as [`flow::Command`] and leaves as [`flow::Event`] or [`flow::Refusal`].

pub mod codec;
pub mod contract;
pub mod flow;
pub mod ids;
pub mod json;
pub mod limits;
mod notice;
pub mod payload;
pub mod question;
pub mod recorded;
pub mod schedule;
pub mod suggestion;
pub mod task;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
pub mod time;
pub mod violation;

pub use ids::{CallbackId, EventId, FlowId, LeaseId, RunId, SuspensionId, TaskId, partition};
pub use notice::Kind as NoticeKind;
pub use payload::Payload;
pub use recorded::{Metadata, Position, Recorded, Version};
pub use time::{InvalidTime, Timestamp};
pub use violation::{PathSegment, Violation};
