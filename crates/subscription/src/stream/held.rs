//! What a stream keeps for whoever opened it.

use super::Stream;
use std::any::Any;
use std::fmt;

/// Given back when the stream is dropped.
#[derive(Default)]
pub(super) struct Held(Option<Box<dyn Any + Send + Sync>>);

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.0.is_some()).finish()
    }
}

impl Stream {
    /// Keeps something until the stream is dropped, such as a place among those that one user may have open.
    pub fn hold(&mut self, what: impl Any + Send + Sync) {
        self.held = Held(Some(Box::new(what)));
    }
}
