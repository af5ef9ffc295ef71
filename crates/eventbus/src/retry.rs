//! When a refused call may be made again: `google.rpc.RetryInfo` in the details of a status, where clients of gRPC look.

use prost::Message;
use prost_types::Any;
use std::time::Duration;
use tonic::{Code, Status};

const TYPE_URL: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<prost_types::Duration>,
}

/// A status that says after which time the same call may be made again.
#[must_use]
pub fn status_with_retry(code: Code, message: &str, after: Duration) -> Status {
    let info = RetryInfo {
        // Centuries are as good as for ever.
        retry_delay: prost_types::Duration::try_from(after).ok(),
    };
    let details = Any {
        type_url: TYPE_URL.to_owned(),
        value: info.encode_to_vec(),
    };
    let status = RpcStatus {
        code: code.into(),
        message: message.to_owned(),
        details: vec![details],
    };
    Status::with_details(code, message, status.encode_to_vec().into())
}

/// After which time a call that got this status may be made again, if the status says so.
#[must_use]
pub fn retry_after(status: &Status) -> Option<Duration> {
    let status = RpcStatus::decode(status.details()).ok()?;
    let mut details = status.details.iter();
    let info = details.find(|it| it.type_url == TYPE_URL)?;
    let info = RetryInfo::decode(&*info.value).ok()?;
    info.retry_delay?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_when_to_call_again() {
        let after = Duration::from_millis(1250);
        let status = status_with_retry(Code::ResourceExhausted, "too fast", after);
        assert_eq!(
            (status.code(), status.message()),
            (Code::ResourceExhausted, "too fast")
        );
        assert_eq!(retry_after(&status), Some(after));
        assert_eq!(retry_after(&Status::unavailable("later")), None);
        let other = Status::with_details(Code::Unavailable, "", vec![0xff].into());
        assert_eq!(retry_after(&other), None);
    }
}
