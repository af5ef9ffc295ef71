//! The wire of the AgentHub EventBus: the messages, client and server of its gRPC service.
//!
//! Owns what travels: paths, field numbers and enum numbers, as `proto/eventbus.proto` says them. Knows no
//! rule: which task is valid, who receives it and what a status may follow is the broker's. Knows no
//! connection either: the server is a `tower` service for any HTTP/2 listener, the client takes any channel.
//!
//! The Rust code is generated and checked in, so that a build needs neither `protoc` nor a build script.
//! `tests/regenerate.rs` says how to write it anew.
//!
//! An enum field is an `i32` that may hold a number without a name. `try_from` tells, and the getter of the
//! field reads such a number as `Unspecified`: a door that must refuse unknown numbers looks at the field.

pub mod values;

mod generated {
    // What generators write is not ours to polish. The comments of messages and fields are from the .proto.
    #[allow(missing_docs, unreachable_pub, clippy::all)]
    #[rustfmt::skip]
    pub(crate) mod eventbus;
}

mod retry;

pub use generated::eventbus::event_bus_client::EventBusClient;
pub use generated::eventbus::event_bus_server::{EventBus, EventBusServer, SERVICE_NAME};
pub use generated::eventbus::{
    Priority, PublishResponse, PublishTaskProgressRequest, PublishTaskRequest,
    PublishTaskResultRequest, SubscribeToTaskResultsRequest, SubscribeToTasksRequest, TaskMessage,
    TaskProgress, TaskResult, TaskStatus,
};

pub use retry::{retry_after, status_with_retry};

/// Reads and writes messages as bytes.
pub use prost::Message;

/// The service and its messages as an encoded `google.protobuf.FileDescriptorSet`, for gRPC reflection.
/// Holds the well-known types that they import, and no comments.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptor_set.bin");

/// The header with how many unfinished tasks a stream may hold.
pub const WINDOW: &str = "taskledger-window";
