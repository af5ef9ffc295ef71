//! Tells when a refused call may be made again: `google.rpc.RetryInfo` in the details of a status, where clients of
//! gRPC look.

use std::time::Duration;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// A status that says after which time the same call may be made again.
#[must_use]
pub fn status_with_retry(code: Code, message: &str, after: Duration) -> Status {
    Status::with_error_details(code, message, ErrorDetails::with_retry_info(Some(after)))
}

/// The time after which a call that got this status may be made again, if the status names one.
#[must_use]
pub fn retry_after(status: &Status) -> Option<Duration> {
    status.get_details_retry_info()?.retry_delay
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
