//! What the programs of this repository print, and how they end.
//!
//! Owns: standard output as text for people or as JSON ([`Output`]), aligned columns, texts that a terminal
//! does not obey, colours ([`Style`]), and the exit of a program with an error ([`end`]). Knows no server and no
//! command.

mod ending;
mod output;
mod style;
#[cfg(feature = "testing")]
pub mod testing;
mod text;

pub use ending::{Ending, complain, end};
pub use output::{Look, Output};
pub use style::{Style, Text, grid};
pub use text::{printable, table};
