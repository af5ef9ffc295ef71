//! What only other nodes know about methods yet: which workers ask for them there, and what was declared there a moment
//! ago.
//!
//! Nodes tell each other within two seconds, and claims rest on what a node knows. The rare calls that would answer
//! something wrong meanwhile ask first: above all those that are about to refuse an unknown method.

use super::super::Service;
use crate::application::api::{Error, Reply, Request, Target};
use taskledger_domain::flow::Kind;

impl Service {
    /// Has the other nodes read what was declared and drained, and write who is connected to them.
    pub(super) async fn others_catch_up(&self) {
        if self.forward.is_some() {
            let context = self.of_this_node();
            let _ = self.ask_others(&context, &Request::MethodFigures).await;
        }
    }

    /// Asks the other nodes for methods that this one does not know, if there are any among new tasks. Cost: O(tasks);
    /// where methods are unknown, a call to each node and a look into the store.
    pub(in crate::application::service) async fn knows_methods(&self, target: &Target) {
        let Target::New(list) = target else {
            return;
        };
        if self.app.validation.lacks_executors(list) {
            self.learn_methods().await;
        }
    }

    /// Whether stored tasks, whose methods the flow looks up, are to be run once more: one was unknown, and the other
    /// nodes were asked meanwhile.
    pub(in crate::application::service) async fn knows_more(
        &self,
        done: &Result<Reply, Error>,
    ) -> bool {
        let is_unknown = matches!(
            done,
            Err(Error::Refused(refused)) if refused.refusal.kind() == Kind::ExecutorNotFound
        );
        if is_unknown {
            self.learn_methods().await;
        }
        is_unknown
    }

    async fn learn_methods(&self) {
        self.others_catch_up().await;
        self.workers.catch_up().await;
    }
}
