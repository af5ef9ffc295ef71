//! Encodes the answers of `tokens.*`.

use crate::application::api::{Access, Error};
use crate::transport::jsonrpc::{RpcError, refusals};

pub(super) fn answer<T>(access: &Access, answer: Result<T, Error>) -> Result<T, RpcError> {
    answer.map_err(|error| refusals::told(&**access.clock(), error))
}
