//! Turns the task types that a stream asks for into the methods that it may claim.
//!
//! The method of a published task is its type, and `type@agent` for one that is addressed: so no other agent claims
//! it. `x.*` and an empty list mean types that are not known beforehand: those that tasks are waiting for.

use crate::application::api::work::Left;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Between the type and the agent of an addressed task.
const AT: char = '@';
/// Stands for all types, or behind a dot for those below it.
const ANY: char = '*';
/// Types that one stream may ask for.
pub(super) const TYPES_MAX: usize = 64;
/// Methods that it is served at once.
const METHODS_MAX: usize = 256;

/// What a stream asks for.
#[derive(Debug, Clone)]
pub(super) struct Patterns {
    agent: Arc<str>,
    exact: Vec<String>,
    /// Beginnings of types, with the dot.
    below: Vec<String>,
}

/// The method of a task of this type, addressed to an agent or to any.
pub(super) fn method(task_type: &str, responder: &str) -> String {
    match responder {
        "" => task_type.to_owned(),
        agent => format!("{task_type}{AT}{agent}"),
    }
}

/// The type of tasks of a method.
pub(super) fn type_of(method: &str) -> &str {
    method.split_once(AT).map_or(method, |(of, _)| of)
}

/// The agent to whom tasks of a method are addressed.
pub(super) fn responder_of(method: &str) -> Option<&str> {
    method.split_once(AT).map(|(_, agent)| agent)
}

/// Whether a type can be one.
pub(super) fn is_type(text: &str) -> bool {
    !text.contains([AT, ANY])
}

/// What is wrong with a type that an agent asks for, and what would be accepted.
pub(super) fn fault(asked: &str) -> Option<&'static str> {
    if asked.is_empty() || asked.contains(AT) {
        return Some("a type is not empty and has no `@`");
    }
    let named = match asked.strip_suffix(ANY) {
        Some("") => "",
        Some(below) if below.ends_with('.') => below,
        Some(_) | None => asked,
    };
    (!is_type(named)).then_some(
        "no type has a `*`; a type as it is published, all types below a dot (`data.*`) and all types (`*`) are accepted",
    )
}

impl Patterns {
    pub(super) fn of(agent: Arc<str>, types: &[String]) -> Self {
        let (mut exact, mut below) = (Vec::new(), Vec::new());
        for given in types {
            match given.strip_suffix(ANY).filter(|it| it.ends_with('.')) {
                Some(beginning) => below.push(beginning.to_owned()),
                None if given == "*" => below.push(String::new()),
                None => exact.push(given.clone()),
            }
        }
        if types.is_empty() {
            below.push(String::new());
        }
        Self {
            agent,
            exact,
            below,
        }
    }

    /// Whether all types are known beforehand.
    pub(super) const fn is_exact(&self) -> bool {
        self.below.is_empty()
    }

    /// Whether a task of this method is for this agent.
    pub(super) fn covers(&self, method: &str) -> bool {
        let of = type_of(method);
        responder_of(method).is_none_or(|agent| *agent == *self.agent)
            && (self.exact.iter().any(|it| it == of)
                || self.below.iter().any(|it| of.starts_with(it.as_str())))
    }

    /// Whether tasks of this method are for this agent though it did not name the type.
    pub(super) fn asks_more(&self, method: &str) -> bool {
        let of = type_of(method);
        self.covers(method) && !self.exact.iter().any(|it| it == of)
    }

    /// The attempts that an agent left, as far as they are of these types.
    pub(super) fn left(&self, silent_ms: u64) -> Left {
        Left::Silent {
            methods: self.methods(std::iter::empty()),
            beginnings: self.below.iter().map(|it| Arc::from(&**it)).collect(),
            silent_ms,
        }
    }

    /// How many methods may be asked for beside those that the agent has named.
    pub(super) const fn room(&self) -> usize {
        METHODS_MAX.saturating_sub(2 * self.exact.len())
    }

    /// The methods to ask for, of which some are `known` to have tasks.
    pub(super) fn methods<'a>(&self, known: impl Iterator<Item = &'a str>) -> Arc<[Arc<str>]> {
        let own = self.exact.iter();
        let own = own.flat_map(|it| [it.clone(), method(it, &self.agent)]);
        let mut methods: BTreeSet<String> = own.collect();
        for known in known.filter(|it| self.covers(it)) {
            if methods.len() >= METHODS_MAX {
                break;
            }
            methods.insert(known.to_owned());
        }
        methods.into_iter().map(Arc::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(types: &[&str]) -> Patterns {
        let types: Vec<String> = types.iter().map(|it| (*it).to_owned()).collect();
        Patterns::of(Arc::from("a"), &types)
    }

    #[test]
    fn types_are_exact_or_below_a_dot() {
        let some = patterns(&["x", "y.*"]);
        for covered in ["x", "x@a", "y.z", "y.z.w", "y.z@a"] {
            assert!(some.covers(covered), "{covered}");
        }
        for other in ["x.z", "x@b", "y", "yy.z", "y.z@b"] {
            assert!(!some.covers(other), "{other}");
        }
        assert!(patterns(&[]).covers("anything") && !patterns(&[]).covers("anything@b"));
        assert!(patterns(&["*"]).covers("anything"));
        let some = patterns(&["x", "y.*"]);
        assert!(some.asks_more("y.z@a") && !some.asks_more("x@a") && !some.asks_more("q"));
    }

    #[test]
    fn a_star_stands_alone_or_behind_a_dot_at_the_end() {
        for good in ["x", "x.y", "x.*", "x.y.*", "*"] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in ["", "x@a", "x*", "x.y*", "*x", "x.*.y", "**", "*.*", "x.**"] {
            assert!(fault(bad).is_some(), "{bad}");
        }
        assert!(is_type("x.y") && !is_type("x.*") && !is_type("x@a"));
    }

    #[test]
    fn exact_types_are_asked_for_before_anybody_knows_them() {
        let methods = patterns(&["x", "y.*"]).methods(["y.z", "y.z@b", "q"].into_iter());
        let methods: Vec<&str> = methods.iter().map(|it| &**it).collect();
        assert_eq!(methods, ["x", "x@a", "y.z"]);
    }
}
