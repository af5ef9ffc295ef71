//! The contents of the audit log: who did what to which object, and how it ended.

mod log;
mod throttle;

pub use log::{AuditLog, Seen};

use crate::caller::{Caller, OPERATOR};
use std::sync::Arc;

/// Days for which rows are kept.
pub const AUDIT_KEPT_DAYS: i64 = 400;
/// Who does what the server does by itself.
pub const SERVER: &str = "server";
/// Stands for callers, objects and addresses beyond those that are counted apart.
pub(crate) const OTHERS: &str = "others";
/// The member of `detail` that says by what means something was done that no call to a server did.
const MEANS: &str = "means";
/// On the data folder or the database itself.
const ON_THE_STORE: &str = "store";
/// The member of `detail` with the id that the caller has chosen for the call.
const CLIENT_REQUEST: &str = "client_request_id";

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$about])* $variant),+ }

        impl $name {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$variant),+];
            /// All of them by their names.
            pub const WORDS: &[(&str, Self)] = &[$(($word, Self::$variant)),+];

            /// The name, which never changes: it is stored.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

words! {
    /// What was done.
    Action {
        /// A token was made.
        TokenCreate = "token.create",
        /// A token got a new secret.
        TokenRotate = "token.rotate",
        /// A token was revoked.
        TokenRevoke = "token.revoke",
        /// A JWT is refused from now on; the object is its `jti`.
        JwtDeny = "jwt.deny",
        /// The JWTs that a subject got up to now are refused; the object is their `sub`.
        SubjectDeny = "jwt.deny_subject",
        /// Credentials were refused; the object is the reason.
        LoginFailed = "login.failed",
        /// Somebody with `users:any` read a flow of somebody else; the object is the flow.
        FlowRead = "flow.read",
        /// Somebody with `users:any` was given tasks of somebody else to work on; the object is that user.
        TaskClaim = "task.claim",
        /// Somebody with `users:any` made tasks for somebody else; the object is the stored parent, if there is one.
        TaskCreate = "task.create",
        /// Somebody with `users:any` ran tasks of somebody else, or new ones for somebody else; the object is the task.
        TaskExecute = "task.execute",
        /// Somebody with `users:any` ran a failed task of somebody else again; the object is the task, as of the next
        /// seven.
        TaskRetry = "task.retry",
        /// Somebody with `users:any` changed a task of somebody else.
        TaskUpdate = "task.update",
        /// Somebody with `users:any` gave a flow to another owner.
        FlowOwner = "flow.owner",
        /// Somebody with `users:any` deleted a task of somebody else.
        TaskDelete = "task.delete",
        /// Somebody with `users:any` cancelled a task of somebody else.
        TaskCancel = "task.cancel",
        /// Somebody with `users:any` copied a task of somebody else, or put a copy into a flow of somebody else.
        TaskCopy = "task.copy",
        /// Somebody with `users:any` answered what a task of somebody else had asked.
        TaskRespond = "task.respond",
        /// Credentials without `worker` reported on a claimed task.
        TaskWork = "task.work",
        /// Somebody with `users:any` cancelled a run of somebody else; the object is the run, as of the next two.
        RunCancel = "run.cancel",
        /// Somebody with `users:any` sent a message to a run of somebody else.
        RunMessage = "run.message",
        /// Somebody with `users:any` had a run of somebody else reported to an address, or not any more.
        RunReport = "run.report",
        /// Somebody with `users:any` read a schedule of somebody else; the object is its name, or `*` for a list.
        ScheduleRead = "schedule.read",
        /// Somebody with `users:any` read a workflow document of somebody else; the object is its name, or `*` for a
        /// list.
        WorkflowRead = "workflow.read",
        /// A webhook was made; the object is its id, as of the next eight.
        WebhookCreate = "webhook.create",
        /// A webhook was changed.
        WebhookUpdate = "webhook.update",
        /// A webhook was deleted.
        WebhookDelete = "webhook.delete",
        /// A webhook was enabled.
        WebhookEnable = "webhook.enable",
        /// A webhook was disabled.
        WebhookDisable = "webhook.disable",
        /// A webhook got a new secret, which was shown.
        WebhookRotate = "webhook.rotate_secret",
        /// Somebody with `users:any` had a test sent to a webhook.
        WebhookTest = "webhook.test",
        /// Somebody with `users:any` had a message sent again; the object is the delivery.
        WebhookRedeliver = "webhook.redeliver",
        /// Somebody with `users:any` had deliveries of a webhook taken up again.
        WebhookRecover = "webhook.recover",
        /// Somebody with `users:any` saved a workflow document of somebody else; the object is its name.
        WorkflowSave = "workflow.save",
        /// Somebody with `users:any` deleted a workflow document of somebody else; the object is its name.
        WorkflowDelete = "workflow.delete",
        /// Somebody with `users:any` read a webhook, or what was sent to it; the object is its id, or `*` for those
        /// of all.
        WebhookRead = "webhook.read",
        /// A secret was set; the object is its name.
        SecretSet = "secret.set",
        /// A secret was deleted; the object is its name.
        SecretDelete = "secret.delete",
        /// Somebody with `users:any` read the names of secrets of somebody else; the object is `*`.
        SecretRead = "secret.read",
        /// Stored secrets were encrypted again under another key.
        SecretReseal = "secret.reseal",
        /// A secret was shown: that of a webhook endpoint, which is the object.
        SecretShown = "secret.shown",
        /// A schedule was made; the object is its name, as of the next four.
        ScheduleCreate = "schedule.create",
        /// A schedule was changed.
        ScheduleUpdate = "schedule.update",
        /// A schedule was paused.
        SchedulePause = "schedule.pause",
        /// A schedule was resumed.
        ScheduleResume = "schedule.resume",
        /// A schedule was deleted.
        ScheduleDelete = "schedule.delete",
        /// A run of a schedule was started by hand; the object is the name of the schedule.
        ScheduleRun = "schedule.run_now",
        /// Somebody with `users:any` declared a method for the flows of all users; the object is the method.
        MethodDeclare = "method.declare",
        /// The declaration of a method that somebody else had declared was removed; the object is the method.
        MethodUndeclare = "method.undeclare",
        /// Somebody with `users:any` read the methods that others had declared; the object is `*`.
        MethodRead = "method.read",
        /// A worker of somebody else was drained, or was to get work again; the object is the worker.
        WorkerDrain = "worker.drain",
        /// Somebody with `users:any` read the workers of others; the object is `*`.
        WorkerRead = "worker.read",
        /// Flows were archived or deleted.
        Retention = "retention",
        /// The read models were made anew.
        Rebuild = "rebuild",
        /// A server was drained, or was to begin tasks again.
        Drain = "server.drain",
        /// A log was imported.
        Import = "import",
        /// A log that had lost events was accepted by `serve --accept-older-log`.
        LogAccepted = "log.accept_older",
        /// A server has started.
        Start = "server.start",
    }
}

words! {
    /// How it ended.
    Outcome {
        /// It was done.
        Done = "done",
        /// It was refused: the caller may not do it, or not so.
        Refused = "refused",
        /// Whether it was done is not known: the answer of a database was lost.
        Unknown = "unknown",
    }
}

/// The actor of an entry, and the call by which it acted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct By {
    /// `user:ann`, `service:ci`, `anonymous`, [`OPERATOR`], or [`SERVER`].
    pub principal: Arc<str>,
    /// The id of the credential, never its secret.
    pub token: Option<Arc<str>>,
    /// The address of the connection.
    pub address: Option<Arc<str>>,
    /// The id of the call, which the server has made.
    pub request: Option<Arc<str>>,
    /// The id that the caller has chosen for it. Anybody may choose any.
    pub client_request: Option<Arc<str>>,
}

/// The origin of a call, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// The address of the connection.
    pub address: Option<Arc<str>>,
    /// The id of the call, which the server has made.
    pub request: Option<Arc<str>>,
    /// The id that the caller has chosen for it.
    pub client_request: Option<Arc<str>>,
}

impl By {
    /// A caller, by a call.
    #[must_use]
    pub fn call(caller: &Caller, origin: &Origin) -> Self {
        Self {
            principal: caller.actor().clone(),
            token: caller.credential().cloned(),
            address: origin.address.clone(),
            request: origin.request.clone(),
            client_request: origin.client_request.clone(),
        }
    }

    /// Whoever works on the store itself.
    #[must_use]
    pub fn operator() -> Self {
        Self::call(&Caller::operator(), &Origin::default())
    }

    /// The server itself.
    #[must_use]
    pub fn server() -> Self {
        Self::named(SERVER)
    }

    /// Callers of whom too many are counted to name each.
    pub(crate) fn others() -> Self {
        Self::named(OTHERS)
    }

    pub(crate) fn named(principal: &str) -> Self {
        Self {
            principal: Arc::from(principal),
            token: None,
            address: None,
            request: None,
            client_request: None,
        }
    }
}

/// A row to be added to the audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The principal, or whoever else acted.
    pub by: By,
    /// The action that was taken.
    pub action: Action,
    /// The object that the action was about; `None` when it has none.
    pub object: Option<Arc<str>>,
    /// How it ended.
    pub outcome: Outcome,
    /// More about it. Never a secret.
    pub detail: Option<serde_json::Value>,
}

impl Entry {
    /// Something that was done.
    #[must_use]
    pub const fn done(by: By, action: Action, object: Option<Arc<str>>) -> Self {
        Self {
            by,
            action,
            object,
            outcome: Outcome::Done,
            detail: None,
        }
    }

    /// Something that was refused.
    #[must_use]
    pub const fn refused(by: By, action: Action, object: Option<Arc<str>>) -> Self {
        Self {
            by,
            action,
            object,
            outcome: Outcome::Refused,
            detail: None,
        }
    }

    /// The same with more about it.
    #[must_use]
    pub fn with(mut self, detail: serde_json::Value) -> Self {
        self.detail = Some(detail);
        self
    }

    /// What is kept as more about it: of what an operator did also by what means, and the id that the caller has
    /// chosen for the call.
    pub(crate) fn kept_detail(&self) -> Option<serde_json::Value> {
        let mut detail = self.detail.clone();
        if let Some(id) = &self.by.client_request {
            detail.get_or_insert_with(|| serde_json::json!({}))[CLIENT_REQUEST] = (&**id).into();
        }
        if &*self.by.principal == OPERATOR {
            detail.get_or_insert_with(|| serde_json::json!({}))[MEANS] = ON_THE_STORE.into();
        }
        detail
    }
}
