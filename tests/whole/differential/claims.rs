//! Calls to the server, of which a claim may come too early.
//!
//! What flows offer is taken up in the background after a restart. A claim that finds nothing changes nothing, so it
//! is made again while something is expected.

use super::driver::Driver;
use super::script::Call;
use serde_json::Value;
use std::time::Duration;

/// Claims at most in place of one.
const CLAIMS_MAX: usize = 100;
/// Between two of them.
const CLAIM_EVERY: Duration = Duration::from_millis(20);

impl Driver {
    /// The answer to a body with these calls.
    pub(crate) async fn posted(&mut self, number: usize, calls: &[Call], body: &Value) -> Value {
        let mut told = self.server().post(body).await;
        for _ in 1..CLAIMS_MAX {
            if !self.is_too_little(number, calls, &told) {
                break;
            }
            tokio::time::sleep(CLAIM_EVERY).await;
            told = self.server().post(body).await;
        }
        told
    }

    /// Whether a claim was answered with nothing where something is expected.
    fn is_too_little(&self, number: usize, calls: &[Call], told: &Value) -> bool {
        let [call] = calls else { return false };
        let claims = |answer: &Value| answer["claims"].as_array().map(Vec::len);
        if call.method != "tasks.claim" || claims(&told["result"]) != Some(0) {
            return false;
        }
        let expected = self.oracle().clone().call(&number.to_string(), call);
        expected.is_ok_and(|answer| claims(&answer) > Some(0))
    }
}
