//! Further members that notices of some kinds have.

use serde::{Serialize, Serializer};
use std::sync::Arc;
use taskledger_domain::contract::Breach;
use taskledger_domain::flow::OutputPart;
use taskledger_domain::question::Escalation;
use taskledger_domain::{Payload, SuspensionId, TaskId, Timestamp};

/// A part of an output, shared. As JSON it is a text or an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part(pub Arc<OutputPart>);

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_plain(serializer)
    }
}

/// The members about a broken contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreachReport {
    task: TaskId,
    breach: Breach,
}

impl BreachReport {
    pub(super) const fn of(task: TaskId, breach: Breach) -> Self {
        Self { task, breach }
    }

    /// Bytes that it takes, roughly. Cost: O(entries).
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.breach.bytes()
    }
}

impl Serialize for BreachReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.breach.payload(self.task).serialize(serializer)
    }
}

/// The members about a wait for a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suspension {
    /// Identifies this wait; an answer must name it.
    #[serde(rename = "suspension_id")]
    pub id: SuspensionId,
    /// What is asked, when it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Payload>,
    /// When nobody will answer any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Number of a reminder, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reminder: Option<u32>,
    /// The receivers of the reminder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
    /// `responded` or `expired`, when it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<&'static str>,
    /// Who has answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responded_by: Option<Arc<str>>,
}

impl Suspension {
    pub(super) const fn of(id: SuspensionId) -> Self {
        Self {
            id,
            question: None,
            expires_at: None,
            reminder: None,
            escalation: None,
            resolution: None,
            responded_by: None,
        }
    }
}
