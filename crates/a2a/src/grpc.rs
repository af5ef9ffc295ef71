//! The gRPC binding: generated messages, client and server, and the ways between them and the objects of this crate.
//!
//! Used at the edge only. Requests become JSON ([`json`]) and are read by the reader of all bindings; answers
//! become messages ([`to`]); errors become a status with details ([`status`]).

pub mod json;
pub mod status;
pub mod to;
pub mod values;

/// The messages, as generated.
pub mod pb {
    pub use crate::generated::a2a::*;
}

pub use pb::a2a_service_client::A2aServiceClient;
pub use pb::a2a_service_server::{A2aService, A2aServiceServer, SERVICE_NAME};

/// The service and its messages as an encoded `google.protobuf.FileDescriptorSet`, for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptor_set.bin");
