//! Runs the attempts that flows have started, and returns their outcomes as commands.
//!
//! Owns executors and attempts. May use `application`, `subscription` and `domain`; decides
//! nothing: what starts, and what follows from an outcome, is decided in the flow's own turn.

pub mod directory;
pub mod dispatcher;
pub mod executor;
pub mod job_source;
mod past;
pub mod secrets;
pub mod workers;

pub use directory::ExecutorDirectory;
pub use dispatcher::Dispatcher;
pub use job_source::JobSource;
pub use workers::WorkerRegistry;
