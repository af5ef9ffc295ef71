//! A cache of compiled input schemas, for later tasks with the same schema.
//!
//! Compiling costs a hundred times what a check costs, and the tasks of a workflow mostly share a
//! few schemas. The key is a digest of the canonical text, so the same schema from two callers is
//! compiled once. Refusals are kept too: a caller that repeats a bad schema costs no compilation.
//! Bounded in entries and in bytes; the entry that was not used for the longest time goes first.
//! Compiling happens outside of the lock; two callers that arrive together with the same new
//! schema may both compile it, and the first result stays. The work is bounded but may take tens
//! of milliseconds, so call it where blocking is allowed.

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_domain::Violation;
use taskledger_domain::task::inputs::{self, CompiledSchema};

/// Schemas kept: more than the distinct schemas of a busy server.
pub const ENTRIES_MAX: usize = 1_024;
/// Bytes that the kept schemas may hold, by their own estimate.
pub const WEIGHT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bytes of the text of a schema that compiles in less than a millisecond.
const QUICK_BYTES_MAX: usize = 2 * 1024;
/// Steps that are charged for a schema that is refused: listing its faults takes a few milliseconds.
const REFUSED_SCHEMA_STEPS: u64 = 100_000;

/// A schema ready for use, or what is wrong with it.
pub type Outcome = Result<Arc<CompiledSchema>, Arc<[Violation]>>;

type Key = [u8; 32];

/// Cloneable by `Arc`; safe to use from many threads.
#[derive(Debug)]
pub struct SchemaCache {
    entries_max: usize,
    weight_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: HashMap<Key, Entry>,
    /// Oldest use first. One key for each entry.
    by_use: BTreeMap<u64, Key>,
    uses: u64,
    weight: usize,
}

#[derive(Debug)]
struct Entry {
    outcome: Outcome,
    weight: usize,
    used: u64,
}

impl Default for SchemaCache {
    fn default() -> Self {
        Self::new(ENTRIES_MAX, WEIGHT_BYTES_MAX)
    }
}

impl SchemaCache {
    /// A cache that keeps at most `entries_max` schemas of at most `weight_max` bytes together.
    #[must_use]
    pub fn new(entries_max: usize, weight_max: usize) -> Self {
        Self {
            entries_max,
            weight_max,
            kept: Mutex::default(),
        }
    }

    /// Whether [`Self::get`] takes no time to speak of: the schema is kept, or small and without
    /// regular expressions. Cost: O(text of the schema).
    #[must_use]
    pub fn is_quick(&self, schema: &Value) -> bool {
        let text = schema.to_string();
        (text.len() <= QUICK_BYTES_MAX && !text.contains("pattern"))
            || self.lock().find(&Sha256::digest(text).into()).is_some()
    }

    /// `schema`, compiled. Cost: O(text of the schema) when it is known, a compilation when not.
    ///
    /// # Errors
    /// What the author of the schema has to mend; see [`inputs::compile`].
    pub fn get(&self, schema: &Value) -> Outcome {
        self.get_counting(schema, &mut 0)
    }

    /// The same; adds to `steps` what it cost.
    ///
    /// # Errors
    /// See [`Self::get`].
    pub fn get_counting(&self, schema: &Value, steps: &mut u64) -> Outcome {
        // Members of objects are sorted, so equal schemas have equal texts.
        let text = schema.to_string();
        *steps += text.len() as u64;
        let key: Key = Sha256::digest(text).into();
        if let Some(outcome) = self.lock().find(&key) {
            return outcome;
        }
        let outcome: Outcome = inputs::compile(schema).map(Arc::new).map_err(Arc::from);
        *steps += outcome
            .as_ref()
            .map_or(REFUSED_SCHEMA_STEPS, |s| s.compile_steps());
        self.lock()
            .keep(key, outcome, self.entries_max, self.weight_max)
    }

    /// How many schemas are kept, and their bytes.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let kept = self.lock();
        (kept.entries.len(), kept.weight)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // A panic under the lock leaves at worst a wrong sum, and nothing under it panics.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find(&mut self, key: &Key) -> Option<Outcome> {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        self.by_use.remove(&entry.used);
        self.by_use.insert(self.uses, *key);
        entry.used = self.uses;
        Some(entry.outcome.clone())
    }

    /// Keeps `outcome` unless the key is taken; returns what is kept.
    fn keep(
        &mut self,
        key: Key,
        outcome: Outcome,
        entries_max: usize,
        weight_max: usize,
    ) -> Outcome {
        if let Some(earlier) = self.find(&key) {
            return earlier;
        }
        let weight = weight_of(&outcome);
        if weight > weight_max {
            return outcome;
        }
        while self.entries.len() >= entries_max || self.weight + weight > weight_max {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                return outcome; // a cache that may keep nothing
            };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.weight -= entry.weight;
            }
        }
        self.uses += 1;
        self.weight += weight;
        self.by_use.insert(self.uses, key);
        self.entries.insert(
            key,
            Entry {
                outcome: outcome.clone(),
                weight,
                used: self.uses,
            },
        );
        outcome
    }
}

fn weight_of(outcome: &Outcome) -> usize {
    /// Bytes of an entry beside its schema: two keys and the maps around them.
    const ENTRY_BYTES: usize = 256;
    /// Bytes of a violation beside its texts.
    const VIOLATION_BYTES: usize = 256;
    ENTRY_BYTES
        + match outcome {
            Ok(compiled) => compiled.weight(),
            Err(violations) => violations
                .iter()
                .map(|v| {
                    let path = serde_json::to_string(&v.path).map_or(0, |text| 2 * text.len());
                    VIOLATION_BYTES
                        + v.reason.len()
                        + v.expected.len()
                        + path
                        + 2 * Violation::ACTUAL_BYTES_MAX
                })
                .sum(),
        }
}

#[cfg(test)]
mod tests {
    use super::SchemaCache;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn schema(i: usize) -> Value {
        json!({"required": [format!("n{i}")]})
    }

    #[test]
    fn the_same_schema_is_compiled_once_whatever_the_order_of_its_members() {
        let cache = SchemaCache::default();
        let one: Value = serde_json::from_str(r#"{"type": "object", "required": ["a"]}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"required":["a"],"type":"object"}"#).unwrap();
        let (one, two) = (cache.get(&one).unwrap(), cache.get(&two).unwrap());
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!(cache.size().0, 1);
        assert!(one.check(&json!({"a": 1})).is_ok());
    }

    #[test]
    fn what_takes_long_to_compile_is_quick_once_it_is_kept() {
        let cache = SchemaCache::default();
        let large = json!({"required": vec!["a long name"; 200]});
        for slow in [json!({"pattern": "(a|b){60}"}), large] {
            assert!(!cache.is_quick(&slow));
            let _ = cache.get(&slow);
            assert!(cache.is_quick(&slow));
        }
        assert!(cache.is_quick(&schema(0)));
    }

    #[test]
    fn a_refusal_is_kept_too() {
        let cache = SchemaCache::default();
        let bad = json!({"type": "objekt"});
        let (first, second) = (cache.get(&bad).unwrap_err(), cache.get(&bad).unwrap_err());
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(first[0].field, "type");
    }

    #[test]
    fn the_entry_that_was_not_used_for_longest_goes_first() {
        let cache = SchemaCache::new(2, usize::MAX);
        let zero = cache.get(&schema(0)).unwrap();
        let one = cache.get(&schema(1)).unwrap();
        cache.get(&schema(0)).unwrap();
        cache.get(&schema(2)).unwrap();
        assert_eq!(cache.size().0, 2);
        assert!(Arc::ptr_eq(&zero, &cache.get(&schema(0)).unwrap()));
        assert!(!Arc::ptr_eq(&one, &cache.get(&schema(1)).unwrap()));
    }

    #[test]
    fn bytes_are_bounded_and_come_back() {
        let one = {
            let cache = SchemaCache::default();
            cache.get(&schema(0)).unwrap();
            cache.size().1
        };
        let cache = SchemaCache::new(usize::MAX, 3 * one + one / 2);
        for i in 0..10 {
            cache.get(&schema(i)).unwrap();
            assert!(cache.size().1 <= 3 * one + one / 2);
        }
        assert_eq!(cache.size(), (3, 3 * one));
        let heavy = json!({"pattern": "a"});
        assert!(cache.get(&heavy).is_ok(), "too heavy to keep, still of use");
        assert_eq!(cache.size(), (3, 3 * one));
    }

    #[test]
    fn a_cache_without_room_still_answers() {
        let cache = SchemaCache::new(0, 0);
        assert!(cache.get(&schema(0)).is_ok());
        assert_eq!(cache.size(), (0, 0));
    }

    #[test]
    fn many_threads_get_one_schema() {
        let cache = SchemaCache::default();
        let schemas: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| cache.get(&schema(7)).unwrap()))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(cache.size().0, 1);
        let kept = cache.get(&schema(7)).unwrap();
        assert!(schemas.iter().all(|s| Arc::ptr_eq(s, &kept)));
    }
}
