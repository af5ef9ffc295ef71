//! Arbitrary bytes against the doors of taskledger, and what must hold for all of them.
//!
//! One file for each target. `run` takes the bytes and panics when a claim does not hold. The
//! fuzzers in `fuzz_targets` call it with bytes that they make up; `tests/core/corpus.rs` of the main
//! workspace includes these files and calls it with every file of `corpus`, so that what was found
//! once is looked at in every test run.

pub mod codec;
pub mod commands;
pub mod documents;
// Left out where a fuzzer of the domain alone is built; the tests of the server have all.
#[cfg(any(feature = "server", test))]
pub mod envelope;
#[cfg(any(feature = "server", test))]
pub mod eventbus;
#[cfg(any(feature = "server", test))]
pub mod jwt;
pub mod task_parser;
pub mod templates;
pub mod types;
