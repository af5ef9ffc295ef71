//! Removes declarations of methods: the caller's own, or, for an administrator, those of others, which is written to
//! the audit log.

use super::super::Service;
use super::super::audited::Audited;
use super::super::auth::user_for;
use super::super::work::allowed;
use super::{rights, undeclared};
use crate::application::api::{Error, Failure};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::application::ports::DeclareRefusal;
use serde_json::json;
use std::sync::Arc;
use taskledger_auth::{Action, Reach};
use taskledger_workers::{MethodKey, Rights};

impl Service {
    /// Takes the declaration of a method back; says whether there was one. `owner`: the user for whose flows it was
    /// declared, empty for the shared one; absent: the caller's own, or else the shared one.
    ///
    /// # Errors
    /// [`Error`]; `Forbidden` for that of another user without `users:any`.
    pub async fn undeclare(
        &self,
        context: &Context,
        method: &Arc<str>,
        owner: Option<Arc<str>>,
    ) -> Result<bool, Error> {
        self.admit(context, UseCase::UndeclareMethod)?;
        let change = (Action::MethodUndeclare, Some(method.clone()));
        let keys = keys(context, method, owner);
        for key in self.access.noted(context, change, keys)? {
            if self.take_back(context, &key).await? {
                self.others_catch_up().await;
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn take_back(&self, context: &Context, key: &MethodKey) -> Result<bool, Error> {
        let (by, rights) = (context.caller.actor(), rights(&context.caller));
        let (of, object) = ((&self.access, context), Some(key.name.clone()));
        let detail = json!({"owner": key.owner});
        let mut audited = Audited::new(of, Action::MethodUndeclare, object, detail);
        if self.may_be_of_another(context, key) {
            audited.begin().await?;
        }
        let removed = match self.workers.undeclare(key, by, rights).await {
            Ok(removed) => removed.map_err(|refusal| undeclared(DeclareRefusal::Kept(refusal))),
            Err(error) => Err(Failure::from(error).into()),
        };
        if !matches!(removed, Ok(true)) {
            audited.refused().await;
        }
        removed
    }

    /// Whether somebody else has declared it. What this node has not heard of may have just been declared at another
    /// one: an administrator could remove that. Cost: O(methods).
    fn may_be_of_another(&self, context: &Context, key: &MethodKey) -> bool {
        let caller = &context.caller;
        let known = self.workers.methods(&Reach::All).into_iter();
        let known = known.filter(|known| known.key == *key);
        let mut declared = known.filter_map(|known| known.declared);
        match declared.next() {
            Some(declared) => declared.declared_by != *caller.actor(),
            None if key.owner.as_ref() == Some(caller.owner()) => false,
            None => rights(caller) == Rights::All,
        }
    }
}

/// What the call may mean, the likeliest first.
fn keys(
    context: &Context,
    method: &Arc<str>,
    owner: Option<Arc<str>>,
) -> Result<Vec<MethodKey>, Error> {
    allowed(&context.caller, std::slice::from_ref(method), "method")?;
    let key = |owner| MethodKey {
        name: method.clone(),
        owner,
    };
    Ok(match owner {
        Some(_) => vec![key(user_for(context, owner)?)],
        None => {
            let own = context.caller.reach().owner().cloned();
            // One that was declared before it could be for one's own flows alone is shared.
            own.map(Some).into_iter().chain([None]).map(key).collect()
        }
    })
}
