//! What workers may claim, and their leases.

use super::super::model::REMOTE;
use super::World;
use taskledger_domain::contract::Breach;
use taskledger_domain::flow::{Claim, Claimable, Command};
use taskledger_domain::testing::id;
use taskledger_domain::{LeaseId, TaskId};

impl World {
    /// Tasks that a worker may claim now.
    pub(super) fn claimable(&self) -> Vec<TaskId> {
        let all = self.model.tasks.iter();
        all.filter(|(id, t)| {
            t.method.as_deref() == Some(REMOTE)
                && self.model.starts_at(**id) <= self.now
                && self.model.is_ready(**id)
        })
        .map(|(id, _)| *id)
        .collect()
    }

    /// The lease of the attempt of a task that is under way outside the server.
    pub(super) fn lease(&self, task: TaskId) -> Option<LeaseId> {
        let task = self.model.tasks.get(&task)?;
        task.lease.as_ref().map(|(lease, _)| lease.id)
    }

    /// The task whose lease a command would end too soon, and its lease, which must stay.
    pub(super) fn kept_by(&self, command: &Command) -> Option<(TaskId, Option<LeaseId>)> {
        let Command::EndLease {
            task, expired_at, ..
        } = command
        else {
            return None;
        };
        (*expired_at > self.now).then(|| (*task, self.lease(*task)))
    }

    pub(super) fn claim(&mut self, of: Claimable, many: usize) -> Command {
        let mut lease = || {
            self.claims += 1;
            LeaseId(id(&format!("lease {}", self.claims)).0)
        };
        Command::Claim(Claim {
            of,
            leases: (0..many).map(|_| lease()).collect(),
            worker: "worker".to_owned(),
            holder: None,
            expires_at: self.now.plus_ms(300),
        })
    }

    /// The worker is told of its claim, twice: that is one fact.
    pub(super) fn refuse(&mut self, claim: &Command) {
        let Command::Claim(Claim {
            of: Claimable::Task(task),
            ..
        }) = claim
        else {
            panic!("only what was named is refused: {claim:?}");
        };
        // The same turn may have ended what kept it.
        let Some(found) = self.flow.claim_fault(*task) else {
            return;
        };
        let breach = Breach {
            phase_name: None,
            broken: found.clone(),
        };
        let reject = Command::RejectClaim {
            task: *task,
            worker: "worker".to_owned(),
            found: Box::new(found),
            breach: Box::new(breach),
        };
        self.give(&reject);
        let before = self.flow.version();
        self.give(&reject);
        assert_eq!(self.flow.version(), before, "it is in the log");
    }
}
