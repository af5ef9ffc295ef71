//! Command lines as the program reads them.

use crate::output::Shown;
use clap::{Args, Parser};
use std::ffi::OsString;

#[derive(Parser)]
struct Line<A: Args> {
    #[command(flatten)]
    _shown: Shown,
    #[command(flatten)]
    args: A,
}

/// The arguments of a command in words that begin with its name.
pub(crate) fn parsed<A: Args>(
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<A, clap::Error> {
    Line::<A>::try_parse_from(words).map(|line| line.args)
}
