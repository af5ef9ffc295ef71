//! The gRPC binding of 0.3: generated messages, client and server, and the ways between them and what 1.0 has.
//!
//! Messages of requests become those of 1.0 first, and answers come from them, so that both have the same bounds.

mod from;
mod to;

pub use from::Old;
pub use to::{card, item, push_config, push_configs, sent, task};

/// The messages, as generated.
pub mod pb {
    pub use crate::generated::a2a_v03::*;
}

pub use pb::a2a_service_client::A2aServiceClient;
pub use pb::a2a_service_server::{A2aService, A2aServiceServer, SERVICE_NAME};

/// The service and its messages as an encoded `google.protobuf.FileDescriptorSet`, for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("../generated/descriptor_set_v03.bin");
