//! One clause of the protocol: what it demands, in one sentence of ours, and its check.

use super::probe::Probe;
use futures_util::future::LocalBoxFuture;
use std::fmt;

/// How binding a clause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The documents demand it.
    Must,
    /// The documents forbid it.
    MustNot,
    /// The documents recommend it.
    Should,
    /// The documents allow it: a server that does not offer it is skipped, not failed.
    May,
    /// The documents leave it open and this project has decided it.
    Decided,
}

impl Level {
    /// All levels, the most binding first.
    pub const ALL: [Self; 5] = [
        Self::Must,
        Self::MustNot,
        Self::Should,
        Self::May,
        Self::Decided,
    ];

    /// As the documents write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::MustNot => "MUST NOT",
            Self::Should => "SHOULD",
            Self::May => "MAY",
            Self::Decided => "decided",
        }
    }

    /// Whether a failure decides the exit code. What this project decided binds nobody else, so it
    /// counts only when `strict`.
    #[must_use]
    pub const fn binds(self, strict: bool) -> bool {
        match self {
            Self::Must | Self::MustNot => true,
            Self::Decided => strict,
            Self::Should | Self::May => false,
        }
    }
}

/// What a check saw that convinced it, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence(pub String);

/// Why a check does not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The clause is broken: what was sent, what came, what was expected.
    Failed(String),
    /// The server lacks what the check needs, and no clause demands that it has it.
    Skipped(String),
}

impl Finding {
    /// The clause is broken.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }

    /// The check cannot be made on this server.
    pub fn skipped(text: impl Into<String>) -> Self {
        Self::Skipped(text.into())
    }
}

/// The result of a check.
pub type Outcome = Result<Evidence, Finding>;

/// A check that passes, with what it saw.
///
/// # Errors
/// None; the type is that of a check's last expression.
pub fn seen(evidence: impl Into<String>) -> Outcome {
    Ok(Evidence(evidence.into()))
}

/// Ends the check as failed, with a formatted text, unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err($crate::clause::Finding::failed(format!($($text)+)));
        }
    };
}
pub(super) use ensure;

/// A check, ready to run.
type Run = Box<dyn for<'a> Fn(&'a Probe) -> LocalBoxFuture<'a, Outcome>>;

/// The kinds of checks.
pub enum Check {
    /// By calls to the server.
    Test {
        /// The function's name behind `clauses::`, where a reader finds it.
        name: &'static str,
        /// Makes the calls.
        run: Run,
    },
    /// Not from outside, and why.
    NotTestable(&'static str),
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Test { name, .. } => write!(f, "Test({name})"),
            Self::NotTestable(reason) => write!(f, "NotTestable({reason})"),
        }
    }
}

/// One clause.
#[derive(Debug)]
pub struct Clause {
    /// `document/section/number-what-it-says`; numbers run from 1 in each section.
    pub id: &'static str,
    /// How binding it is.
    pub level: Level,
    /// What it demands.
    pub text: &'static str,
    /// Ids of clauses that say the same elsewhere; they may share the check.
    pub same_as: &'static [&'static str],
    /// How it is looked at.
    pub check: Check,
}

impl Clause {
    /// The same clause, said to repeat others.
    #[must_use]
    pub(super) fn same_as(mut self, ids: &'static [&'static str]) -> Self {
        self.same_as = ids;
        self
    }

    /// `document/section`.
    #[must_use]
    pub fn section(&self) -> &'static str {
        self.id
            .rsplit_once('/')
            .map_or(self.id, |(section, _)| section)
    }
}

/// An async function that may be a check: `async fn name(probe: &Probe) -> Outcome`.
pub(super) trait Test: AsyncFn(&Probe) -> Outcome + Copy + 'static {}
impl<F: AsyncFn(&Probe) -> Outcome + Copy + 'static> Test for F {}

fn test<F: Test>(check: F) -> Check {
    fn erased<G>(run: G) -> Run
    where
        G: for<'a> Fn(&'a Probe) -> LocalBoxFuture<'a, Outcome> + 'static,
    {
        Box::new(run)
    }
    let path = std::any::type_name::<F>();
    Check::Test {
        name: path.split_once("clauses::").map_or(path, |(_, name)| name),
        run: erased(move |probe| Box::pin(async move { check(probe).await })),
    }
}

const fn clause(level: Level, id: &'static str, text: &'static str, check: Check) -> Clause {
    Clause {
        id,
        level,
        text,
        same_as: &[],
        check,
    }
}

/// A clause that demands.
pub(super) fn must<F: Test>(id: &'static str, text: &'static str, check: F) -> Clause {
    clause(Level::Must, id, text, test(check))
}

/// A clause that forbids.
pub(super) fn must_not<F: Test>(id: &'static str, text: &'static str, check: F) -> Clause {
    clause(Level::MustNot, id, text, test(check))
}

/// A clause that recommends.
pub(super) fn should<F: Test>(id: &'static str, text: &'static str, check: F) -> Clause {
    clause(Level::Should, id, text, test(check))
}

/// A clause that allows: its check ends with [`Finding::Skipped`] where the thing is not offered.
pub(super) fn may<F: Test>(id: &'static str, text: &'static str, check: F) -> Clause {
    clause(Level::May, id, text, test(check))
}

/// A rule of this project, where the documents leave the matter open.
pub(super) fn decided<F: Test>(id: &'static str, text: &'static str, check: F) -> Clause {
    clause(Level::Decided, id, text, test(check))
}

/// A clause that no call can show, and why.
pub(super) const fn not_testable(
    level: Level,
    id: &'static str,
    text: &'static str,
    reason: &'static str,
) -> Clause {
    clause(level, id, text, Check::NotTestable(reason))
}
