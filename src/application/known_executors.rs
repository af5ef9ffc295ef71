//! The names of the server's executors, which accompany the refusal of an unknown one. They travel beside a refusal;
//! the words are those of the door. Methods of workers are not among them: they come and go, and on each node at
//! another time.

use super::ports::ExecutorSnapshot;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use taskledger_domain::suggestion::suggestion;

/// Executors that are named in one refusal.
const NAMED_MAX: usize = 20;
/// Bytes of a name that is named: longer ones are counted.
const NAME_BYTES_MAX: usize = 64;
/// Unknown methods of one call for which a similar name is looked for.
const COMPARED_MAX: usize = 8;
/// Executors that each of them is compared with.
const COMPARED_WITH_MAX: usize = 1000;

/// The executors that a caller may have meant. Empty where a refusal is not about executors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownExecutors {
    /// The first ones by name, at most 20.
    pub names: Vec<String>,
    /// How many there are beside them.
    pub more: usize,
    /// Unknown methods of the call, with the executor that was probably meant.
    pub meant: BTreeMap<String, String>,
}

impl KnownExecutors {
    /// Those of a snapshot, beside these unknown methods. Cost: O(executors x letters²), bounded by the limits above.
    #[must_use]
    pub fn beside<'m>(
        executors: &dyn ExecutorSnapshot,
        unknown: impl Iterator<Item = &'m str>,
    ) -> Self {
        let mut all = executors.names();
        all.retain(|name| !executors.is_remote(name));
        all.sort_unstable();
        let named = all.iter().filter(|name| name.len() <= NAME_BYTES_MAX);
        let names: Vec<String> = named.take(NAMED_MAX).map(|n| (*n).to_owned()).collect();
        let meant = unknown.take(COMPARED_MAX).filter_map(|method| {
            let names = all.iter().take(COMPARED_WITH_MAX).copied();
            let near = suggestion(method, names)?;
            Some((method.to_owned(), near.to_owned()))
        });
        Self {
            meant: meant.collect(),
            more: all.len() - names.len(),
            names,
        }
    }

    /// The executor that was probably meant by `method`.
    #[must_use]
    pub fn meant_by(&self, method: &str) -> Option<&str> {
        self.meant.get(method).map(String::as_str)
    }
}
