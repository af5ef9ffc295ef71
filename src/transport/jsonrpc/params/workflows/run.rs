//! `workflows.run`.

use super::super::super::reader::{BOOLEAN, Parameters, Reader};
use super::kinds::{labels, name, owner, trigger, user_id, version};
use crate::application::api::workflows::{Kept, RunWorkflow};
use taskledger_domain::Violation;

/// What to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Params(pub RunWorkflow);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let about = "The version; without it the newest. A call that is repeated under an idempotency key runs that of the first call.";
        let version = reader.optional("version", version(), about);
        let trigger = trigger(&mut reader);
        let user_id = user_id(&mut reader);
        let execute = reader.with_default(
            "execute",
            BOOLEAN,
            true,
            "Whether the run starts at once; otherwise start it with `tasks.execute` and `root_task_id`.",
        );
        let owner = owner(&mut reader);
        let labels = labels(&mut reader);
        reader.finish(|| {
            Some(Self(RunWorkflow {
                kept: Kept { owner, name: name? },
                version: version.and_then(|version| u32::try_from(version).ok()),
                trigger,
                user_id,
                execute,
                labels,
            }))
        })
    }
}
