//! The wire of the Agent2Agent protocol 1.0: objects, operations, errors, cards and their signatures; that of 0.3 is a
//! translation of it ([`v03`]).
//!
//! Owns what travels and in which form: JSON by the rules of ProtoJSON, with the path of every fault; gRPC
//! messages, generated from `proto/a2a.proto`; the tables of errors. Knows no server, no clock, no connection, and
//! nothing of tasks beyond their form: which message runs what is the door's.
//!
//! Requests of all bindings are read from JSON: those of gRPC are written as JSON first ([`grpc::json`]), so that
//! one reader decides what is valid, and a fault is described alike on each binding.

mod generated {
    // What generators write is not ours to polish.
    #[allow(missing_docs, unreachable_pub, deprecated, clippy::all)]
    #[rustfmt::skip]
    pub(crate) mod a2a;
    #[allow(missing_docs, unreachable_pub, deprecated, clippy::all)]
    #[rustfmt::skip]
    pub(crate) mod a2a_v03;
}

pub mod card;
pub mod error;
pub mod event;
pub mod grpc;
pub mod headers;
pub mod jcs;
pub mod message;
pub mod operation;
pub mod read;
pub mod request;
pub mod signing;
pub mod task;
pub mod v03;
pub mod write;

pub use error::{Edition, Error, ErrorKind};
pub use event::{SendMessageResponse, StreamResponse};
pub use message::{Content, Message, Part, Role};
pub use operation::{Answer, Call, Operation};
pub use read::{Fault, Faults, Object, Wire};
pub use task::{Artifact, Task, TaskState, TaskStatus};
