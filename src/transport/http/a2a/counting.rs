//! Counts calls over HTTP by operation, duration and outcome.

use crate::transport::a2a::A2a;
use crate::transport::figures::{Binding, Figures, OTHER_METHOD};
use crate::transport::http::door::Door;
use axum::response::Response;
use taskledger_a2a::{Edition, Error};
use tokio::time::Instant;
use tonic::Code;

/// A call that is counted once, when it is answered.
pub(super) struct Counting<'f> {
    figures: &'f Figures,
    edition: Edition,
    binding: Binding,
    begun: Instant,
    method: &'static str,
    is_counted: bool,
}

impl<C: Send + Sync + 'static> Door<C> {
    /// A call begins, of no known operation yet.
    pub(super) fn counting(&self, a2a: &A2a, binding: Binding) -> Counting<'_> {
        Counting {
            figures: self.dispatcher.figures(),
            edition: a2a.edition(),
            binding,
            begun: Instant::now(),
            method: OTHER_METHOD,
            is_counted: false,
        }
    }
}

impl Counting<'_> {
    pub(super) const fn is_of(&mut self, method: &'static str) {
        self.method = method;
    }

    /// It is answered, or its stream begins.
    pub(super) fn answered(&mut self, answer: &Result<Response, Error>) {
        match answer {
            Ok(_) => self.count(Code::Ok),
            Err(error) => self.failed(error),
        }
    }

    pub(super) fn failed(&mut self, error: &Error) {
        let (code, _) = error.kind.grpc_code(self.edition);
        self.count(Code::from_i32(code));
    }

    fn count(&mut self, code: Code) {
        if std::mem::replace(&mut self.is_counted, true) {
            return;
        }
        let took = self.begun.elapsed();
        self.figures
            .call_of_binding(Some(self.method), code, self.binding, took);
    }
}
