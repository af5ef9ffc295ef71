//! Commands with a part that needs no server, which the program adds.

use clap::Subcommand;

/// A command that talks to a server, or one beside it.
#[derive(Debug, Subcommand)]
pub(crate) enum Either<Remote: Subcommand, Local: Subcommand> {
    #[command(flatten)]
    Remote(Remote),
    #[command(flatten)]
    Local(Local),
}
