//! Reads history in order and shows it to readers.
//!
//! Owns: following the log ([`feed`]) and driving the read models ([`runner`]). May use `store`,
//! `projections` and `domain`; may not append. Every reader hangs off the log: what it has not
//! seen in memory it finds by reading.

pub mod feed;
pub mod runner;

pub use feed::Feed;
