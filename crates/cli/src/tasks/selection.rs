//! Which tasks a list shows, or several are changed at once: filters of the server, and some that it does not have.

use super::{CliError, Params};
use crate::labels::selector;
use crate::tree::{SKIPPED, shown_status};
use crate::when::{When, time};
use clap::builder::PossibleValuesParser;
use serde_json::{Map, Value};
use taskledger_domain::Timestamp;
use taskledger_domain::task::Status;

/// The statuses that a filter takes.
const STATUSES: [&str; 6] = [
    Status::Pending.as_str(),
    Status::InProgress.as_str(),
    Status::Completed.as_str(),
    Status::Failed.as_str(),
    Status::Cancelled.as_str(),
    SKIPPED,
];

/// Filters, all of which must be met.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Selection {
    /// Only tasks in this status: pending, in_progress, completed, failed, cancelled; or skipped: pending tasks that
    /// their run has ended without
    #[arg(long, value_parser = PossibleValuesParser::new(STATUSES), hide_possible_values = true)]
    status: Option<String>,
    /// Only tasks of this user
    #[arg(long)]
    user: Option<String>,
    /// Only tasks with this label: KEY=VALUE, or KEY for any value; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Tasks at every level, not the roots of flows alone
    #[arg(long)]
    all: bool,
    /// Only tasks without a parent, which is the default
    #[arg(long, conflicts_with_all = ["parent", "all"])]
    root_only: bool,
    /// Only tasks that wait for a person, at every level
    #[arg(long)]
    suspended: bool,
    /// Only children of this task
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Only tasks with this name; `*` matches any characters
    #[arg(long)]
    name: Option<String>,
    /// Only tasks with this priority
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=3))]
    priority: Option<u8>,
    /// Only tasks whose error contains this text; case does not matter
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Only tasks created at this time or later
    #[arg(long, visible_alias = "created-after", value_name = "TIME")]
    since: Option<String>,
    /// Only tasks created before this time
    #[arg(long, visible_alias = "created-before", value_name = "TIME")]
    until: Option<String>,
    /// Only tasks that existed at this time and had not ended
    #[arg(long, value_name = "TIME", conflicts_with = "until")]
    at: Option<String>,
    /// Only tasks that ended at this time or later
    #[arg(long, value_name = "TIME")]
    ended_since: Option<String>,
    /// Only tasks that ended before this time
    #[arg(long, value_name = "TIME")]
    ended_until: Option<String>,
}

impl Selection {
    /// Of these the failed children of a task.
    pub(super) fn with_failed_children(self, parent: String) -> Self {
        Self {
            status: Some("failed".to_owned()),
            parent: Some(parent),
            ..self
        }
    }

    /// Whether nothing was asked for.
    pub(super) const fn is_empty(&self) -> bool {
        self.status.is_none()
            && self.user.is_none()
            && self.labels.is_empty()
            && !self.all
            && !self.root_only
            && !self.suspended
            && self.parent.is_none()
            && self.name.is_none()
            && self.priority.is_none()
            && self.error.is_none()
            && self.since.is_none()
            && self.until.is_none()
            && self.at.is_none()
            && self.ended_since.is_none()
            && self.ended_until.is_none()
    }

    /// The status that was asked for, as servers know it.
    pub(super) fn status(&self) -> Option<&str> {
        match self.status.as_deref() {
            Some(SKIPPED) => Some(Status::Pending.as_str()),
            status => status,
        }
    }

    /// The status that was asked for, if tasks in it are none of these statuses.
    pub(super) fn status_outside(&self, statuses: &[&str]) -> Option<&str> {
        let is_outside = |status: &str| !statuses.contains(&status);
        self.status()
            .is_some_and(is_outside)
            .then_some(self.status.as_deref())?
    }

    /// Whether tasks below others are left out.
    pub(super) const fn is_of_roots(&self) -> bool {
        self.root_only || !(self.all || self.suspended || self.parent.is_some())
    }

    /// Whether tasks at every level were asked for.
    pub(super) const fn is_of_all(&self) -> bool {
        self.all
    }

    /// The filters by their options, with what was given.
    pub(super) fn asked(&self) -> Map<String, Value> {
        let labels = (!self.labels.is_empty()).then(|| self.labels.clone());
        Params::default()
            .maybe("status", self.status.clone())
            .maybe("user", self.user.clone())
            .maybe("label", labels)
            .flag("suspended", self.suspended)
            .maybe("parent", self.parent.clone())
            .maybe("name", self.name.clone())
            .maybe("priority", self.priority)
            .maybe("error", self.error.clone())
            .maybe("since", self.since.clone())
            .maybe("until", self.until.clone())
            .maybe("at", self.at.clone())
            .maybe("ended_since", self.ended_since.clone())
            .maybe("ended_until", self.ended_until.clone())
            .0
    }

    /// What the server is asked; what it cannot filter is left out.
    pub(super) fn params(&self, when: &When) -> Result<Params, CliError> {
        let past = |text: &str| when.parse_past(text);
        let since = read("--since", &self.since, past)?.map(|time| time.to_string());
        // Created at that moment counts.
        let until = match read("--at", &self.at, past)? {
            Some(time) => Some(Timestamp(time.0.saturating_add(1)).to_string()),
            None => {
                read("--until", &self.until, |text| when.parse(text))?.map(|time| time.to_string())
            }
        };
        let name = self.name.clone().filter(|name| !name.contains('*'));
        Ok(Params::default()
            .maybe("status", self.status())
            .maybe("user_id", self.user.clone())
            .maybe("labels", selector(&self.labels)?)
            .flag("root_only", self.is_of_roots())
            .flag("suspended", self.suspended)
            .maybe("parent_id", self.parent.clone())
            .maybe("name", name)
            .maybe("priority", self.priority)
            .maybe("created_after", since)
            .maybe("created_before", until))
    }

    /// What is left to be looked for here; `None`: the server filters all of it.
    pub(super) fn rest(&self, when: &When) -> Result<Option<Rest>, CliError> {
        let past = |text: &str| when.parse_past(text);
        let rest = Rest {
            is_skipped: self.status.as_deref() == Some(SKIPPED),
            name: self.name.clone().filter(|name| name.contains('*')),
            error: self.error.as_ref().map(|error| error.to_lowercase()),
            goes_on_at: read("--at", &self.at, past)?,
            ended_since: read("--ended-since", &self.ended_since, past)?,
            ended_until: read("--ended-until", &self.ended_until, |text| when.parse(text))?,
        };
        Ok((rest != Rest::default()).then_some(rest))
    }
}

/// The time of an option, as one of the readers of [`When`] reads it.
fn read(
    name: &str,
    text: &Option<String>,
    parse: impl Fn(&str) -> Result<Timestamp, String>,
) -> Result<Option<Timestamp>, CliError> {
    let parsed = text.as_deref().map(parse).transpose();
    parsed.map_err(|why| CliError::Usage(format!("{name}: {why}")))
}

/// Filters that the server does not have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rest {
    /// Only what a run has left pending.
    is_skipped: bool,
    name: Option<String>,
    /// In small letters.
    error: Option<String>,
    goes_on_at: Option<Timestamp>,
    ended_since: Option<Timestamp>,
    ended_until: Option<Timestamp>,
}

impl Rest {
    pub(super) fn takes(&self, task: &Value) -> bool {
        let text = |name: &str| task.get(name).and_then(Value::as_str).unwrap_or_default();
        let ended = time(task, "completed_at");
        let is_named = |name: &String| fits(name, text("name"));
        (!self.is_skipped || shown_status(task) == SKIPPED)
            && self.name.as_ref().is_none_or(is_named)
            && (self.error.as_ref())
                .is_none_or(|error| text("error").to_lowercase().contains(error))
            && (self.goes_on_at).is_none_or(|at| ended.is_none_or(|ended| ended >= at))
            && (self.ended_since).is_none_or(|at| ended.is_some_and(|ended| ended >= at))
            && (self.ended_until).is_none_or(|at| ended.is_some_and(|ended| ended < at))
    }
}

/// Whether `text` is as `pattern` says, in which `*` matches any characters. Cost: O(pattern x text).
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::when::{Times, tests::at_noon};
    use serde_json::json;

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, text) in [
            ("a", "a"),
            ("*", ""),
            ("fetch*", "fetch all"),
            ("*all", "fetch all"),
            ("f*h*l", "fetch all"),
            ("a*a", "aa"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("a", "ab"),
            ("a*a", "a"),
            ("*b", "ba"),
            ("f*x*l", "fetch all"),
        ] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_status_that_there_is_not_is_refused_with_all_that_there_are() {
        #[derive(Debug, clap::Parser)]
        struct Line {
            #[command(flatten)]
            which: Selection,
        }
        let read = |status: &str| {
            let line = <Line as clap::Parser>::try_parse_from(["x", "--status", status]);
            line.map(|line| line.which).map_err(|it| it.to_string())
        };
        let said = read("faild").unwrap_err();
        for expected in Status::ALL
            .iter()
            .map(|it| it.as_str())
            .chain([SKIPPED, "similar"])
        {
            assert!(said.contains(expected), "{expected}: {said}");
        }
        assert_eq!(read("skipped").unwrap().status(), Some("pending"));
    }

    fn taken(selection: &Selection, completed_at: Value) -> bool {
        let rest = selection.rest(&at_noon(Times::Utc)).unwrap();
        let task = json!({"name": "n", "completed_at": completed_at});
        rest.is_none_or(|rest| rest.takes(&task))
    }

    #[test]
    fn skipped_tasks_are_looked_for_among_the_pending_ones() {
        let selection = Selection {
            status: Some("skipped".to_owned()),
            ..Selection::default()
        };
        let when = at_noon(Times::Utc);
        assert_eq!(
            selection.params(&when).unwrap().build()["status"],
            "pending"
        );
        let rest = selection.rest(&when).unwrap().unwrap();
        assert!(rest.takes(&json!({"status": "pending", "skipped": true})));
        assert!(!rest.takes(&json!({"status": "pending"})));
    }

    #[test]
    fn what_went_on_at_a_time_had_begun_and_had_not_ended() {
        let selection = Selection {
            at: Some("2026-01-31T10:00:00Z".to_owned()),
            ..Selection::default()
        };
        let asked = selection.params(&at_noon(Times::Utc)).unwrap().build();
        assert_eq!(asked["created_before"], "2026-01-31T10:00:00.000001Z");
        assert!(taken(&selection, Value::Null));
        assert!(taken(&selection, json!("2026-01-31T10:00:00Z")));
        assert!(!taken(&selection, json!("2026-01-31T09:59:59Z")));
    }

    #[test]
    fn times_at_which_something_is_to_have_happened_have_passed() {
        let tomorrow = || Some("tomorrow".to_owned());
        let selections = [
            (
                "--since",
                Selection {
                    since: tomorrow(),
                    ..Selection::default()
                },
            ),
            (
                "--at",
                Selection {
                    at: tomorrow(),
                    ..Selection::default()
                },
            ),
            (
                "--ended-since",
                Selection {
                    ended_since: tomorrow(),
                    ..Selection::default()
                },
            ),
        ];
        for (name, selection) in selections {
            let when = at_noon(Times::Utc);
            let asked = selection.params(&when).map(|_| ());
            let said = asked.and_then(|()| selection.rest(&when).map(|_| ()));
            let said = said.unwrap_err().to_string();
            assert!(
                said.starts_with(&format!("{name}: `tomorrow` is still to come; expected")),
                "{said}"
            );
        }
        let until = Selection {
            until: tomorrow(),
            ..Selection::default()
        };
        assert!(until.params(&at_noon(Times::Utc)).is_ok());
    }

    #[test]
    fn ends_lie_between_two_times() {
        let selection = Selection {
            ended_since: Some("1h".to_owned()),
            ended_until: Some("2026-01-31T11:30:00Z".to_owned()),
            ..Selection::default()
        };
        assert!(taken(&selection, json!("2026-01-31T11:00:00Z")));
        for other in ["2026-01-31T10:59:59Z", "2026-01-31T11:30:00Z"] {
            assert!(!taken(&selection, json!(other)), "{other}");
        }
        assert!(!taken(&selection, Value::Null));
        assert!(taken(&Selection::default(), Value::Null));
    }
}
