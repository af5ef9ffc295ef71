//! The names of the members of `params`: the engine's own, those that an executor declares, and what is
//! near enough to be a mistake.
//!
//! `params` is for executors, so its members are open: what an executor reads, only it can know. One
//! that declares its members has others refused; without a declaration only those are refused that
//! were meant for the engine, because they would be ignored without a word.

use crate::suggestion::{near_miss, suggestion};
use crate::violation::{PathSegment, Violation};
use serde_json::{Map, Value};

/// The members of `params` that the engine reads.
pub const ENGINE_PARAMS: [&str; 7] = [
    "timeout_seconds",
    "retry_count",
    "retry",
    "deadline",
    "delay_seconds",
    "schedule_to_start_seconds",
    "cancel_grace_seconds",
];

/// The member of `params` that the agent broker alone writes: who published the task, and as what.
pub const BROKER_PARAM: &str = "eventbus";

/// What other systems call the engine's members, in lower case and without `_` and `-`.
const OTHER_NAMES: [(&str, &str); 51] = [
    ("timeout", "timeout_seconds"),
    ("timeouts", "timeout_seconds"),
    ("timeoutsec", "timeout_seconds"),
    ("timeoutsecs", "timeout_seconds"),
    ("timeoutms", "timeout_seconds"),
    ("timeoutmillis", "timeout_seconds"),
    ("timeoutmilliseconds", "timeout_seconds"),
    ("timeoutminutes", "timeout_seconds"),
    ("timelimit", "timeout_seconds"),
    ("tasktimeout", "timeout_seconds"),
    ("attempttimeout", "timeout_seconds"),
    ("executiontimeout", "timeout_seconds"),
    ("retries", "retry_count"),
    ("retriesmax", "retry_count"),
    ("retrymax", "retry_count"),
    ("retrylimit", "retry_count"),
    ("retrytimes", "retry_count"),
    ("retryattempts", "retry_count"),
    ("maxretry", "retry_count"),
    ("maxretries", "retry_count"),
    ("maxretrycount", "retry_count"),
    ("numretries", "retry_count"),
    ("maxattempts", "retry"),
    ("retrypolicy", "retry"),
    ("retryoptions", "retry"),
    ("retrydelay", "retry"),
    ("retrydelayms", "retry"),
    ("deadlineat", "deadline"),
    ("delay", "delay_seconds"),
    ("delayms", "delay_seconds"),
    ("delaysecs", "delay_seconds"),
    ("startdelay", "delay_seconds"),
    ("startdelayseconds", "delay_seconds"),
    ("initialdelayseconds", "delay_seconds"),
    ("starttoclose", "timeout_seconds"),
    ("starttocloseseconds", "timeout_seconds"),
    ("starttoclosems", "timeout_seconds"),
    ("starttoclosetimeout", "timeout_seconds"),
    ("starttoclosetimeoutseconds", "timeout_seconds"),
    ("scheduletostart", "schedule_to_start_seconds"),
    ("scheduletostartms", "schedule_to_start_seconds"),
    ("scheduletostarttimeout", "schedule_to_start_seconds"),
    ("scheduletostarttimeoutseconds", "schedule_to_start_seconds"),
    ("scheduletoclose", "deadline"),
    ("scheduletocloseseconds", "deadline"),
    ("scheduletoclosetimeout", "deadline"),
    ("scheduletoclosetimeoutseconds", "deadline"),
    ("cancelgrace", "cancel_grace_seconds"),
    ("cancelgracems", "cancel_grace_seconds"),
    ("cancelgraceperiod", "cancel_grace_seconds"),
    ("cancelgraceperiodseconds", "cancel_grace_seconds"),
];

/// The member of the engine that `name` was probably meant to be, though it is none.
fn meant(name: &str) -> Option<&'static str> {
    let mut plain = name.to_ascii_lowercase();
    plain.retain(|c| !matches!(c, '_' | '-'));
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == plain);
    other
        .map(|(_, member)| *member)
        .or_else(|| near_miss(name, ENGINE_PARAMS.into_iter()))
}

/// What is wrong with the names of the members of `params`, which stand at `path`. `declared`: those
/// that the task's executor reads; `None` when it does not say, or there is none. Cost: O(members).
#[must_use]
pub fn unknown_params(
    params: &Map<String, Value>,
    declared: Option<&[String]>,
    path: &[PathSegment],
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let own = declared.unwrap_or_default();
    let known = || {
        ENGINE_PARAMS
            .into_iter()
            .chain(own.iter().map(String::as_str))
    };
    for (name, value) in params {
        if known().any(|known| known == name) {
            continue;
        }
        let near = match declared {
            Some(_) => meant(name).or_else(|| suggestion(name, known())),
            None => meant(name),
        };
        let expected = match (near, declared) {
            (Some(near), _) => format!("a known field; did you mean `{near}`?"),
            (None, Some(_)) => format!("one of: {}", known().collect::<Vec<_>>().join(", ")),
            (None, None) => continue,
        };
        Violation::report(&mut violations, || {
            let place: Vec<_> = path.iter().cloned().chain([name.as_str().into()]).collect();
            Violation::new(&place, "Unknown field", expected, value)
        });
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The expectation for one member, if it is refused.
    fn judged(name: &str, declared: Option<&[&str]>) -> Option<String> {
        let params = Map::from_iter([(name.to_owned(), json!(1))]);
        let declared: Option<Vec<String>> =
            declared.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let mut found = unknown_params(&params, declared.as_deref(), &["params".into()]);
        assert!(found.len() < 2, "{found:?}");
        let fault = found.pop()?;
        assert_eq!((&*fault.field, &*fault.reason), (name, "Unknown field"));
        assert_eq!(fault.path, ["params".into(), name.into()]);
        Some(fault.expected)
    }

    #[test]
    fn what_was_meant_for_the_engine_is_refused_with_its_name() {
        for (given, member) in [
            ("timeout", "timeout_seconds"),
            ("timeoutSeconds", "timeout_seconds"),
            ("time-out", "timeout_seconds"),
            ("timeout_second", "timeout_seconds"),
            ("retries", "retry_count"),
            ("max_retries", "retry_count"),
            ("retryCount", "retry_count"),
            ("max_attempts", "retry"),
            ("deadlines", "deadline"),
            ("delay", "delay_seconds"),
            ("delaySeconds", "delay_seconds"),
            ("schedule_to_start", "schedule_to_start_seconds"),
            ("scheduleToStartTimeout", "schedule_to_start_seconds"),
            ("schedule_to_start_second", "schedule_to_start_seconds"),
            ("start_to_close_seconds", "timeout_seconds"),
            ("schedule_to_close_timeout", "deadline"),
            ("cancel_grace", "cancel_grace_seconds"),
            ("cancelGraceSeconds", "cancel_grace_seconds"),
        ] {
            let told = Some(format!("a known field; did you mean `{member}`?"));
            assert_eq!(judged(given, None), told, "{given}");
            assert_eq!(judged(given, Some(&["url"])), told, "{given}");
            assert_eq!(judged(given, Some(&[given])), None, "{given}: declared");
        }
    }

    #[test]
    fn other_members_are_the_executors_own_unless_it_declares_its_members() {
        for given in ["user_agent", "headline", "entry", "tag", "connect_timeout"] {
            assert_eq!(judged(given, None), None, "{given}");
        }
        for given in ENGINE_PARAMS {
            assert_eq!(judged(given, Some(&[])), None, "{given}");
        }
        let near = judged("usr_agent", Some(&["user_agent"]));
        assert_eq!(
            near,
            Some("a known field; did you mean `user_agent`?".to_owned())
        );
        let far = judged("tag", Some(&["user_agent"]));
        let all = "one of: timeout_seconds, retry_count, retry, deadline, delay_seconds, \
                   schedule_to_start_seconds, cancel_grace_seconds, user_agent";
        assert_eq!(far, Some(all.to_owned()));
    }
}
