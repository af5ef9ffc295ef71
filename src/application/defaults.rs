//! The default members of `params` that a method declares, for tasks that do not set them. They are written into a task
//! when it is created, so that it shows them and keeps them when the declaration changes.

use super::ports::ExecutorSnapshot;
use serde_json::{Map, Value};
use taskledger_domain::Payload;
use taskledger_domain::task::call::NewTask;
use taskledger_domain::task::spec;

/// Two ways to say the same; a task that has one has said it.
const RETRIES: [&str; 2] = ["retry", "retry_count"];

/// Fills in what the methods of new tasks declare. Cost: O(tasks), and O(`params`) for those with defaults.
pub(super) fn fill_in(tasks: &mut [NewTask], executors: &dyn ExecutorSnapshot) {
    for task in tasks {
        let method = task.specification.method.as_deref();
        let Some(defaults) = method.and_then(|method| executors.defaults(method)) else {
            continue;
        };
        let given = task.specification.params.as_ref();
        let mut params = given.map(Payload::to_map).unwrap_or_default();
        let before = params.len();
        let says_retry = RETRIES.iter().any(|name| params.contains_key(*name));
        for (name, value) in defaults.to_map() {
            let is_said = params.contains_key(&name) || says_retry && RETRIES.contains(&&*name);
            if !is_said {
                params.insert(name, value);
            }
        }
        if params.len() == before {
            continue;
        }
        let updates = Map::from_iter([("params".to_owned(), Value::Object(params))]);
        // What was declared was checked then; a task that it makes too large keeps what it has.
        if let Ok(updates) = spec::updates(&updates) {
            task.specification = task.specification.clone().updated(&updates);
        }
    }
}
