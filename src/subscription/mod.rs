//! Reads the log in order and shows it to those who follow it.
//!
//! Owns: reading from a position onwards, catching up and then living ([`feed`]), and driving the
//! read models with it ([`runner`], [`rebuild`]). May use: `store`, `projections`, `domain`.
//! Events come from the store's log; rows go to the read models; progress goes to whoever waits
//! for a position ([`runner::Handle`]).

pub mod feed;
pub mod rebuild;
pub mod runner;
