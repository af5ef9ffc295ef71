//! Reads the log in order and shows it to those who follow it.
//!
//! Owns: reading from a position onwards, catching up and then living ([`feed`]), driving the
//! read models with it ([`runner`], [`rebuild`]), and streams of notices for people and programs that
//! watch ([`notice`], [`live`], [`stream`]). May use: `store`, `projections`, `domain`.
//! Events come from the store's log; rows go to the read models; progress goes to whoever waits
//! for a position ([`runner::Handle`]); notices go to the doors.

pub mod cursor;
pub mod descriptions;
pub mod encodings;
pub mod feed;
pub mod live;
pub mod notice;
pub mod rebuild;
pub mod run_fold;
pub mod runner;
pub mod runs;
pub mod stream;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod users;
