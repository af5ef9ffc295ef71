//! `workflows.create`.

use super::super::super::reader::{BOOLEAN, Parameters, Reader};
use super::kinds::{document, labels, strict, trigger, user_id};
use crate::application::api::workflows::CreateWorkflow;
use taskledger_domain::Violation;

/// What to create.
#[derive(Debug, Clone, PartialEq)]
pub struct Params(pub CreateWorkflow);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let document = document(&mut reader);
        let strict = strict(&mut reader);
        let trigger = trigger(&mut reader);
        let user_id = user_id(&mut reader);
        let execute = reader.with_default(
            "execute",
            BOOLEAN,
            false,
            "Whether the run starts at once; otherwise start it with `tasks.execute` and `root_task_id`.",
        );
        let labels = labels(&mut reader);
        reader.finish(|| {
            Some(Self(CreateWorkflow {
                document: document?,
                strict,
                trigger,
                user_id,
                execute,
                labels,
            }))
        })
    }
}
