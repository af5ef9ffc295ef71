//! How flows share a busy executor: by age, or fairly by owner with weights.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The order of flows that wait for the same executor, within a priority.
#[derive(Debug, Clone, Default)]
pub enum Sharing {
    /// Who has waited longest is first.
    #[default]
    ByAge,
    /// Flows of the owner who has had least, for its weight, are first.
    Fair(Arc<Weights>),
}

/// The shares that owners have of a busy executor, compared with each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Weights(HashMap<String, NonZeroU32>);

impl Weights {
    /// The weight of an owner: 1 unless it was given another one.
    #[must_use]
    pub fn of(&self, owner: Option<&str>) -> u32 {
        let given = owner.and_then(|owner| self.0.get(owner));
        given.map_or(1, |weight| weight.get())
    }
}

impl FromIterator<(String, NonZeroU32)> for Weights {
    fn from_iter<T: IntoIterator<Item = (String, NonZeroU32)>>(weights: T) -> Self {
        Self(weights.into_iter().collect())
    }
}
