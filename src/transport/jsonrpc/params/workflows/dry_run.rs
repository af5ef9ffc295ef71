//! `workflows.dry_run`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{ObjectKind, document, strict, trigger};
use crate::application::api::workflows::DryRun;
use taskledger_domain::{Payload, Violation};

/// What to play.
#[derive(Debug, Clone, PartialEq)]
pub struct Params(pub DryRun);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let document = document(&mut reader);
        let trigger = trigger(&mut reader);
        let outputs = reader.optional(
            "outputs",
            ObjectKind,
            "What the phases give: the output of one completion by name of the phase, or a list of them; `{\"$fail\": reason}` fails an attempt.",
        );
        let strict = strict(&mut reader);
        reader.finish(|| {
            Some(Self(DryRun {
                document: document?,
                strict,
                trigger,
                outputs: outputs.unwrap_or_else(Payload::empty),
            }))
        })
    }
}
