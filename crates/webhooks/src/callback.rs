//! Callbacks: the address to which one execution reports.

use super::delivery::Secret;
use super::endpoint::{EndpointId, Filter, Life, Ordering};
use super::reports::Reported;
use super::store::New;
use std::sync::Arc;
use taskledger_domain::CallbackId;

/// What a caller gives along with an execution. spec: interface / Push Notifications
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callback {
    /// Where to send.
    pub url: Arc<str>,
    /// Headers to send along.
    pub headers: Vec<(Arc<str>, Secret)>,
    /// What signs; `None`: nothing.
    pub secret: Option<Secret>,
    /// It gets reports of the run; `None`: notices about its tasks.
    pub reported: Option<Reported>,
}

impl Callback {
    /// The endpoint that it is kept as.
    #[must_use]
    pub fn endpoint(self, id: CallbackId, owner: Option<Arc<str>>) -> New {
        New {
            id: EndpointId::from(id),
            url: self.url,
            description: Arc::from(""),
            owner,
            filter: Filter::default(),
            life: Life::Run(None),
            ordering: match self.reported {
                Some(_) => Ordering::Endpoint,
                None => Ordering::Task,
            },
            schedule: None,
            headers: self.headers,
            secret: self.secret,
            reported: self.reported,
        }
    }
}
