//! Agent2Agent 0.3, where it is switched on: its requests lead to the same calls as those of 1.0, and their answers are
//! written as it has them.
//!
//! Owns: paths of HTTP+JSON and the gRPC service of 0.3. The forms are in `crates/a2a/src/v03/`; what calls do, and who
//! may make them, is decided as for all others.

pub(in super::super) mod grpc;
pub(in super::super) mod rest;

use super::{A2a, Agreed, Cards, Options, card};
use taskledger_a2a::card::AgentCard;
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

    /// The public card, for calls that get it if there is none for callers with credentials.
    pub(super) const fn public_card(&self) -> &AgentCard {
        &self.card
    }
}

/// A call that asks for the card in a binding which has one call for both cards.
fn card_of(a2a: &A2a, operation: Operation) -> Option<Answer> {
    let is_public = operation == Operation::GetExtendedAgentCard && a2a.extended.is_none();
    is_public.then(|| Answer::Card(Box::new(a2a.public_card().clone())))
}

impl Cards {
    /// The card for readers of 0.3, if it is served: the signatures are those of the public one.
    pub(in super::super) fn v03(
        url: &str,
        options: &Options,
        authenticates: bool,
    ) -> Option<String> {
        let card = || card::signed(url, options, authenticates);
        (options.v03).then(|| v03::card::hybrid(&card()).to_string())
    }
}
