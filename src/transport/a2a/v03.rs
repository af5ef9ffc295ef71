//! Agent2Agent 0.3, where it is switched on: its requests lead to the same calls as those of 1.0, and their answers are
//! written as it has them.
//!
//! Owns: paths of HTTP+JSON and the gRPC service of 0.3. The forms are in `crates/a2a/src/v03/`; what calls do, and who
//! may make them, is decided as for all others.

pub(in super::super) mod grpc;
pub(in super::super) mod rest;

use super::{A2a, Agreed};
use taskledger_a2a::operation::Answer;
use taskledger_a2a::{Error, Operation, v03};

impl A2a {
    /// Whether 0.3 is served.
    pub(in super::super) const fn serves_v03(&self) -> bool {
        self.options.v03
    }

    /// [`Self::agreed`] for a call of 0.3.
    ///
    /// # Errors
    /// `VersionNotSupported`, `ExtensionSupportRequired`.
    pub(in super::super) fn agreed_v03<'h>(
        &self,
        version: Option<&str>,
        extensions: impl Iterator<Item = &'h str>,
    ) -> Result<Agreed, Error> {
        v03::served(version)?;
        self.activated(extensions)
    }
}

/// A call that asks for the card in a binding which has one call for both cards.
fn card_of(a2a: &A2a, operation: Operation) -> Option<Answer> {
    let is_public = operation == Operation::GetExtendedAgentCard && !a2a.cards.has_extended();
    is_public.then(|| Answer::Card(Box::new(a2a.cards.card(a2a.described().as_deref(), &[]))))
}
