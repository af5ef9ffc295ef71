//! The events of a run, as its caller receives them: over HTTP, or inside the process.

use super::ApiError;
use async_trait::async_trait;
use serde_json::Value;

/// A run that has begun.
pub struct Begun {
    /// The result of the call.
    pub answer: Value,
    /// What happens in it, from its start to its end; `None`: the server does not tell, and has to be asked.
    pub events: Option<Box<dyn RunEvents>>,
}

/// An event of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvent {
    /// The event's type, from the line `event:` of the stream.
    pub name: String,
    /// The parsed JSON of the line `data:`.
    pub data: Value,
}

/// An item of a run's events.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// Something has happened.
    Event(RunEvent),
    /// The connection is lost, for this reason; another attempt follows.
    Lost(String),
    /// There is a connection again.
    Found,
}

/// The events of a run, in order, without a gap or a repetition.
#[async_trait]
pub trait RunEvents: Send {
    /// What comes next; `None`: nothing more. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`ApiError`]: another attempt would end in the same way.
    async fn next(&mut self) -> Result<Option<News>, ApiError>;
}
