//! The status of runs in memory and in the tables; `stages.rs` derives it from events.

use std::sync::Arc;
use taskledger_domain::flow::{RunStage, RunStarted};
use taskledger_domain::question::Asks;
use taskledger_domain::{Position, Recorded, Timestamp, Version};
use taskledger_sql::{Args, Columns};

/// How a run stands, in memory.
pub(crate) struct Standing {
    pub(super) flow_no: i64,
    /// Version of the event that started the run.
    pub(super) version: Version,
    pub(super) has_origin: bool,
    pub(super) owner: Option<Arc<str>>,
    pub(super) context: Arc<str>,
    pub(super) stage: RunStage,
    pub(super) at: Timestamp,
    pub(super) position: Position,
    /// Questions that wait; how many, when they are not in memory yet.
    pub(super) waiting: u32,
    /// Those questions, oldest first: version and ordinal of the task.
    pub(super) waits: Vec<(Version, u32, Asks)>,
}

/// A status that a run had, as it is written.
#[derive(Debug, Clone)]
pub(crate) struct PastStatus {
    pub(super) run_no: i64,
    pub(super) flow_no: i64,
    pub(super) owner: Option<Arc<str>>,
    /// Position of the event with which the run left this status.
    pub(super) left: Position,
    pub(super) stage: RunStage,
    pub(super) at: Timestamp,
    pub(super) position: Position,
    /// Version of the question that it shows.
    pub(super) asked: Option<Version>,
}

impl PastStatus {
    pub(super) fn bind(&self, args: &mut Args) {
        args.int(self.run_no);
        args.position(self.left);
        args.text(self.owner.clone());
        args.name(self.stage.as_str());
        args.time(self.at);
        args.position(self.position);
        args.int(self.asked.map(taskledger_sql::int));
    }
}

/// Something that was said, as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said {
    kind: &'static str,
    /// -1 for a message.
    ordinal: i64,
    waits: bool,
}

impl Said {
    pub(super) const MESSAGE: Self = Self {
        kind: "message",
        ordinal: -1,
        waits: false,
    };

    pub(super) fn asked(ordinal: u32, asks: Asks, waits: bool) -> Self {
        Self {
            kind: match asks {
                Asks::Input => "input",
                Asks::Auth => "auth",
            },
            ordinal: i64::from(ordinal),
            waits,
        }
    }

    pub(super) fn bind(self, args: &mut Args) {
        args.name(self.kind);
        args.int(self.ordinal);
        args.int(i64::from(self.waits));
    }
}

impl Standing {
    /// How a run stands that has just begun.
    pub(super) fn begun(
        recorded: &Recorded,
        e: &RunStarted,
        (flow_no, owner): (i64, Option<Arc<str>>),
    ) -> Self {
        let context = e.origin.as_ref().and_then(|it| it.context.as_deref());
        Self {
            flow_no,
            version: recorded.version,
            has_origin: e.origin.is_some(),
            owner,
            context: context.map_or_else(|| Arc::from(recorded.flow.to_string()), Arc::from),
            stage: RunStage::Submitted,
            at: recorded.time,
            position: recorded.position,
            waiting: 0,
            waits: Vec::new(),
        }
    }

    /// Reads the last columns of [`super::load::RUNS`].
    pub(super) fn read(c: &mut Columns<'_>) -> Result<Self, crate::Error> {
        Ok(Self {
            flow_no: c.int()?,
            version: c.number()?,
            has_origin: c.int()? != 0,
            owner: c.opt_text()?,
            context: c.text()?,
            stage: c.named()?,
            at: c.time()?,
            position: c.number()?,
            waiting: c.number()?,
            waits: Vec::new(),
        })
    }

    /// Takes a question that waits, as [`super::load::WAITS`] reads it behind the number of its run.
    pub(super) fn take_wait(&mut self, c: &mut Columns<'_>) -> Result<(), crate::Error> {
        let (version, ordinal, kind) = (c.number()?, c.number()?, c.named()?);
        self.waits.push((version, ordinal, kind));
        Ok(())
    }

    pub(super) fn bind(&self, no: i64, args: &mut Args) {
        args.int(no);
        args.int(self.flow_no);
        args.position(self.version);
        args.int(i64::from(self.has_origin));
        args.text(self.owner.clone());
        args.text(self.context.clone());
        args.name(self.stage.as_str());
        args.time(self.at);
        args.position(self.position);
        args.int(i64::from(self.waiting));
    }
}
