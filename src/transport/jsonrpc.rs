//! JSON-RPC 2.0, independent of what carries it: bytes in, bytes out.
//!
//! Data comes in through [`envelope`], goes through the one method table of [`dispatch`], whose
//! handlers read their parameters with [`reader`] and [`params`], and leaves as a result or as a
//! row of the one error table, [`error`].

pub mod dispatch;
mod encode;
pub mod envelope;
pub mod error;
pub mod methods;
pub mod params;
mod prepare;
pub mod reader;
pub mod refusals;
pub mod replies;
pub mod stream_request;
pub mod streaming;
mod table;
pub mod task_json;
pub mod text;
pub mod tree_json;
pub mod working;

pub use dispatch::{Body, Call, Changes, Dispatcher, Method, Reply};
pub(crate) use encode::{
    Answer, failed as failure_body, first as answer_body, refusal as error_body,
};
pub use encode::{Streamed, WHOLE_ANSWER_BYTES_MAX};
pub(crate) use error::logged;
pub use error::{ErrorKind, RpcError};
pub use reader::Reader;
pub(crate) use refusals::told;
pub use streaming::Streams;
