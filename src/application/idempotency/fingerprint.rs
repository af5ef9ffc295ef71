//! The fingerprint of a request: equal if and only if two requests ask for the same, whatever the door,
//! the order of members and the way in which references were written down.

use crate::application::api::runs::{CancelRun, RunOrigin, StartRun};
use crate::application::api::work::{Complete, Fail, Release, Renew, Respond, Suspend};
use crate::application::api::{Cancel, Copy, Delete, Execute, Request, Retry, Target, Update};
use crate::webhooks::callback::Callback;
use crate::webhooks::reports::Reported;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::sync::Arc;
use taskledger_domain::flow::{Include, Specification, When};
use taskledger_domain::task::Labels;
use taskledger_domain::task::call::TaskList;
use taskledger_domain::task::spec::{GivenId, TaskFields, TaskRef, Updates};
use taskledger_domain::{Payload, TaskId, Timestamp};

/// SHA-256 of the request in lower-case hex. Cost: O(size).
#[must_use]
pub(in crate::application) fn fingerprint(request: &Request) -> Arc<str> {
    let mut hash = Canonical(Sha256::new());
    hash.text(request.use_case().as_str());
    hash.request(request);
    let mut hex = String::with_capacity(64);
    for byte in hash.0.finalize() {
        write!(hex, "{byte:02x}").expect("a string can always be written to");
    }
    Arc::from(hex)
}

/// Writes values so that no two have the same bytes: each begins with its length, or with a byte that says
/// whether it is there. Structures are taken apart whole, so that a new member cannot be forgotten.
struct Canonical(Sha256);

impl Canonical {
    fn request(&mut self, request: &Request) {
        match request {
            Request::Create(list) => self.list(list),
            Request::Execute(Execute {
                target,
                allow_unknown_executors,
                executor_wait_ms,
                include,
                // It changes no outcome.
                id_check: _,
                callback,
            }) => {
                self.target(target);
                self.byte(u8::from(*allow_unknown_executors));
                self.number(*executor_wait_ms);
                self.byte(u8::from(*include == Include::Failed));
                self.option(callback.as_ref(), Self::callback);
            }
            Request::StartRun(start) => {
                let StartRun {
                    target,
                    allow_unknown_executors,
                    executor_wait_ms,
                    origin,
                    reported,
                } = &**start;
                self.target(target);
                self.byte(u8::from(*allow_unknown_executors));
                self.number(*executor_wait_ms);
                let RunOrigin {
                    context,
                    message,
                    references,
                } = origin;
                self.option(context.as_deref(), Self::text);
                self.option(message.as_ref(), Self::payload);
                self.number(references.len() as u64);
                for run in references {
                    self.0.update(run.0.as_bytes());
                }
                self.option(reported.as_ref(), Self::callback);
            }
            // They are once by themselves.
            Request::CancelRun(CancelRun { run, .. }) => {
                self.0.update(run.0.as_bytes());
            }
            Request::FollowUp(message) => {
                self.0.update(message.run.0.as_bytes());
                self.text(&message.message_id);
            }
            Request::Retry(Retry {
                task,
                include,
                callback,
            }) => {
                self.task(*task);
                self.byte(u8::from(*include == Include::Failed));
                self.option(callback.as_ref(), Self::callback);
            }
            Request::Update(update) => {
                let Update { task, updates } = &**update;
                self.task(*task);
                self.updates(updates);
            }
            Request::Delete(Delete { task, cascade }) => {
                self.task(*task);
                self.byte(u8::from(*cascade));
            }
            Request::Cancel(Cancel {
                task,
                cascade,
                reason,
                // Said by workers, who have no keys.
                remarks: _,
            }) => {
                self.task(*task);
                self.byte(u8::from(*cascade));
                self.option(reason.as_deref(), Self::text);
            }
            Request::Copy(Copy {
                task,
                copy_children,
                parent,
            }) => {
                self.task(*task);
                self.byte(u8::from(*copy_children));
                self.option(parent.as_ref(), |hash, parent| hash.task(*parent));
            }
            // They need no keys.
            Request::Claim(_)
            | Request::Lease(_)
            | Request::Hint(_)
            | Request::HeldHere
            | Request::TasksHeld(_)
            | Request::MethodFigures => {}
            Request::Renew(Renew { task, .. })
            | Request::Complete(Complete { task, .. })
            | Request::Fail(Fail { task, .. })
            | Request::Release(Release { task, .. }) => self.task(*task),
            Request::Suspend(Suspend { task, .. }) => self.task(*task),
            Request::Respond(Respond {
                task,
                suspension,
                answer,
                on_behalf_of,
            }) => {
                self.task(*task);
                self.text(&suspension.to_string());
                self.text(answer.as_str());
                self.option(on_behalf_of.as_deref(), Self::text);
            }
            // Reads keep no keys.
            Request::Explain(task) | Request::Overview(task) => self.task(*task),
            Request::History(history) => self.task(history.task),
            Request::SiblingOutput(wanted) => self.task(wanted.task),
        }
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::New(list) => self.some(list, Self::list),
            Target::Stored(task) => {
                self.byte(0);
                self.task(*task);
            }
        }
    }

    fn list(&mut self, list: &TaskList) {
        self.number(list.len() as u64);
        for (fields, around) in list.fields() {
            let TaskFields {
                // Where it was written is no part of what it says.
                path: _,
                id,
                name,
                user_id,
                parent,
                priority,
                dependencies,
                specification,
                // A list with faults is refused before its key is looked at.
                is_specified: _,
                labels,
            } = fields;
            self.option(around, |hash, around| hash.number(around as u64));
            self.option(id.as_ref(), |hash, id| match id {
                GivenId::Stored(id) => hash.some(id, |hash, id| hash.task(*id)),
                GivenId::Alias(alias) => {
                    hash.byte(0);
                    hash.text(alias);
                }
            });
            self.text(name);
            self.option(user_id.as_deref(), Self::text);
            self.option(parent.as_ref(), Self::reference);
            self.byte(priority.get());
            self.dependencies(dependencies);
            self.specification(specification);
            self.labels(labels);
        }
    }

    fn updates(&mut self, updates: &Updates) {
        let Updates {
            name,
            user_id,
            parent,
            priority,
            dependencies,
            inputs,
            schemas,
            params,
            start_at,
            status,
            labels,
            // Nothing with faults is carried out.
            faults: _,
        } = updates;
        self.option(name.as_deref(), Self::text);
        self.option(user_id.as_ref(), |hash, user| {
            hash.option(user.as_deref(), Self::text);
        });
        self.option(parent.as_ref(), |hash, parent| {
            hash.option(parent.as_ref(), Self::reference);
        });
        self.option(priority.as_ref(), |hash, priority| {
            hash.byte(priority.get())
        });
        self.option(dependencies.as_deref(), Self::dependencies);
        self.option(inputs.as_ref(), Self::payload);
        self.option(schemas.as_ref(), |hash, schemas| {
            let raw = schemas.as_ref().map(|schemas| &schemas.raw);
            hash.option(raw, Self::payload);
        });
        self.option(params.as_ref(), |hash, params| {
            let raw = params.as_ref().map(|params| &params.raw);
            hash.option(raw, Self::payload);
        });
        self.option(status.as_ref(), |hash, status| hash.text(status.as_str()));
        self.option(start_at.as_ref(), |hash, at| {
            hash.option(at.as_ref(), Self::time);
        });
        self.option(labels.as_ref(), Self::labels);
    }

    fn labels(&mut self, labels: &Labels) {
        self.number(labels.iter().count() as u64);
        for (key, value) in labels.iter() {
            self.text(key);
            self.text(value);
        }
    }

    fn specification(&mut self, specification: &Specification) {
        let Specification {
            inputs,
            schemas,
            params,
            start_at,
            // Read out of `schemas` and `params`.
            delay_ms: _,
            method: _,
            retry: _,
            timeout_ms: _,
            deadline: _,
            remote: _,
            start_within_ms: _,
            cancel_grace_ms: _,
        } = specification;
        self.payload(inputs);
        self.option(schemas.as_ref(), Self::payload);
        self.option(params.as_ref(), Self::payload);
        self.option(start_at.as_ref(), Self::time);
    }

    fn time(&mut self, time: &Timestamp) {
        self.0.update(time.0.to_le_bytes());
    }

    fn callback(&mut self, callback: &Callback) {
        let Callback {
            url,
            headers,
            secret,
            reported,
        } = callback;
        self.text(url);
        self.number(headers.len() as u64);
        for (name, value) in headers {
            self.text(name);
            self.text(&value.0);
        }
        self.option(secret.as_ref(), |hash, secret| hash.text(&secret.0));
        if let Some(Reported {
            name,
            scheme,
            content_type,
        }) = reported
        {
            self.option(name.as_deref(), Self::text);
            self.option(scheme.as_deref(), Self::text);
            self.text(content_type);
        }
    }

    fn dependencies(&mut self, dependencies: &[(TaskRef, When)]) {
        self.number(dependencies.len() as u64);
        for (reference, when) in dependencies {
            self.reference(reference);
            self.byte(match when {
                When::Ended => 0,
                When::Completed => 1,
                When::Always => 2,
            });
        }
    }

    fn reference(&mut self, reference: &TaskRef) {
        self.text(&reference.text);
    }

    /// Members are in order already: doors make payloads from sorted maps.
    fn payload(&mut self, payload: &Payload) {
        self.text(payload.as_str());
    }

    fn task(&mut self, task: TaskId) {
        self.0.update(task.0.as_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    fn byte(&mut self, byte: u8) {
        self.0.update([byte]);
    }

    fn some<T: ?Sized>(&mut self, value: &T, write: impl FnOnce(&mut Self, &T)) {
        self.byte(1);
        write(self, value);
    }

    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        match value {
            None => self.byte(0),
            Some(value) => {
                self.byte(1);
                write(self, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fingerprint;
    use crate::application::api::{Delete, Request};
    use serde_json::Value;
    use std::collections::HashSet;
    use taskledger_domain::task::call::parse_create;
    use taskledger_domain::testing::id;

    fn of(params: &str) -> String {
        let params: Value = serde_json::from_str(params).unwrap();
        let list = parse_create(params.as_object().unwrap()).unwrap();
        fingerprint(&Request::Create(list)).to_string()
    }

    #[test]
    fn neither_order_nor_white_space_nor_the_way_of_writing_matters() {
        let one = of(r#"{"name":"a","inputs":{"x":1,"y":{"b":[1,2],"a":null}}}"#);
        for same in [
            r#"{ "inputs" : {"y":{"a":null, "b":[1, 2]}, "x":1}, "name":"a" }"#,
            r#"{"tasks":[{"name":"a","inputs":{"x":1,"y":{"b":[1,2],"a":null}}}]}"#,
            r#"{"task":{"name":"a","priority":2,"inputs":{"x":1,"y":{"b":[1,2],"a":null}}}}"#,
        ] {
            assert_eq!(of(same), one, "{same}");
        }
    }

    #[test]
    fn every_member_matters() {
        let all = [
            r#"{"name":"a"}"#,
            r#"{"name":"b"}"#,
            r#"{"name":"a","id":"a"}"#,
            r#"{"name":"a","user_id":"ann"}"#,
            r#"{"name":"a","priority":1}"#,
            r#"{"name":"a","labels":{"x":"1"}}"#,
            r#"{"name":"a","labels":{"x":"2"}}"#,
            r#"{"name":"a","labels":{"x":"","y":"1"}}"#,
            r#"{"name":"a","inputs":{"x":1}}"#,
            r#"{"name":"a","inputs":{"x":"1"}}"#,
            r#"{"name":"a","schemas":{"method":"m"}}"#,
            r#"{"name":"a","params":{"x":1}}"#,
            r#"{"tasks":[{"name":"a"},{"name":"b"}]}"#,
            r#"{"name":"a","children":[{"name":"b"}]}"#,
            r#"{"tasks":[{"name":"a"},{"name":"b","parent_id":"a"}]}"#,
            r#"{"tasks":[{"name":"a"},{"name":"b","dependencies":[{"id":"a"}]}]}"#,
            r#"{"tasks":[{"name":"a"},{"name":"b","dependencies":[{"id":"a","required":false}]}]}"#,
        ];
        let distinct: HashSet<_> = all.iter().map(|params| of(params)).collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn the_use_case_matters() {
        let task = id("a");
        let delete = Request::Delete(Delete {
            task,
            cascade: false,
        });
        assert_ne!(fingerprint(&delete), fingerprint(&Request::Explain(task)));
        assert_eq!(fingerprint(&delete).len(), 64);
    }
}
