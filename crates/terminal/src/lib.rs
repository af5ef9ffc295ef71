//! The output of this repository's programs, and their exit.
//!
//! Owns: standard output as text for people or as JSON ([`Output`]), messages on standard error, aligned columns, texts
//! that a terminal does not obey, colours ([`Style`]), and the exit of a program with an error ([`end`]). Knows no
//! server and no command.

mod columns;
mod ending;
mod message;
mod output;
mod style;
#[cfg(feature = "testing")]
pub mod testing;
mod text;

pub use columns::{Column, aligned, grid};
pub use ending::{Ending, complain, end};
pub use message::message;
pub use output::{Look, Output, Telling};
pub use style::{Style, Text};
pub use text::printable;
