//! Code that publishing, subscribing and results share: a client, and the meaning of its failures.

use super::connection::{self, Connection};
use crate::target::HOW_TO_SHOW;
use crate::{ApiError, CliError, Remote};
use std::time::Duration;
use taskledger_eventbus::EventBusClient;
use tonic::{Code, Status};

/// Who publishes and subscribes, unless it is said.
pub(super) const AGENT: &str = "cli";
/// Between two attempts to subscribe again.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// A client, connected.
pub(super) type Client = EventBusClient<Connection>;

/// A client of the server.
pub(super) async fn connected(remote: &Remote) -> Result<Client, CliError> {
    let target = remote.target()?;
    let (connection, origin) = connection::open(&target).await?;
    Ok(EventBusClient::with_origin(connection, origin))
}

/// What a status means on the command line.
pub(super) fn failed(remote: &Remote, status: &Status) -> CliError {
    let text = status.message();
    // It was reached, so it has one.
    let url = remote.url().unwrap_or_default();
    match status.code() {
        Code::Unauthenticated | Code::PermissionDenied => {
            let (number, what) = if status.code() == Code::Unauthenticated {
                (401, "does not take the credentials")
            } else {
                (403, "does not permit this to the credentials")
            };
            CliError::Api(ApiError::Denied {
                status: number,
                text: format!("{url} {what}: {text}; {HOW_TO_SHOW}"),
            })
        }
        Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded => {
            // What the server has said itself has no cause on this side.
            let what = match std::error::Error::source(status) {
                Some(_) => "gave no answer",
                None => "cannot do it now",
            };
            CliError::Api(ApiError::Connection(format!("{url} {what}: {text}")))
        }
        Code::InvalidArgument
        | Code::AlreadyExists
        | Code::NotFound
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::ResourceExhausted
        | Code::Unimplemented => CliError::Usage(format!("{} refuses it: {text}", url)),
        Code::Ok | Code::Aborted | Code::Internal | Code::DataLoss => {
            CliError::Failed(format!("{} could not do it: {text}", url))
        }
    }
}

/// Whether a stream that ended so may go on over another connection.
pub(super) fn may_go_on(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal
    )
}

/// A time on the wire, so many seconds after another one.
pub(super) fn stamp(at: taskledger_domain::Timestamp, seconds: i64) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: at.0.div_euclid(1_000_000) + seconds,
        nanos: i32::try_from(at.0.rem_euclid(1_000_000) * 1000).unwrap_or(0),
    }
}

/// Tells people on standard error.
pub(super) fn say(text: &str) {
    taskledger_terminal::complain("taskledger broker", &text);
}

/// A JSON object, for clap.
pub(super) fn object(text: &str) -> Result<serde_json::Map<String, serde_json::Value>, String> {
    taskledger_domain::json::read(text.as_bytes())
        .map_err(|error| format!("not a JSON object: {error}"))
}
