//! The result of each clause, and the verdict.

use super::clause::Level;
use serde_json::{Value, json};

/// The result of one clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Kept, with the evidence.
    Passed(String),
    /// Broken, with the finding.
    Failed(String),
    /// Not looked at, and why.
    Skipped(String),
    /// Cannot be looked at from outside, and why.
    NotTestable(&'static str),
}

impl Verdict {
    /// The words for the verdicts, in the order of the counts.
    pub const NAMES: [&'static str; 4] = ["passed", "failed", "skipped", "not testable"];

    /// The word for it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Passed(_) => Self::NAMES[0],
            Self::Failed(_) => Self::NAMES[1],
            Self::Skipped(_) => Self::NAMES[2],
            Self::NotTestable(_) => Self::NAMES[3],
        }
    }

    /// Evidence, finding or reason.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Passed(text) | Self::Failed(text) | Self::Skipped(text) => text,
            Self::NotTestable(text) => text,
        }
    }
}

/// One clause and its verdict.
#[derive(Debug, Clone)]
pub struct Line {
    /// The clause's id.
    pub id: &'static str,
    /// How binding it is.
    pub level: Level,
    /// What it demands.
    pub text: &'static str,
    /// What became of it.
    pub verdict: Verdict,
}

/// All lines, in the order of the documents.
#[derive(Debug)]
pub struct Report {
    /// One for each clause that was asked for.
    pub lines: Vec<Line>,
}

impl Report {
    /// Whether no clause that binds is broken.
    #[must_use]
    pub fn conforms(&self, strict: bool) -> bool {
        let broken =
            |line: &&Line| line.level.binds(strict) && matches!(line.verdict, Verdict::Failed(_));
        !self.lines.iter().any(|line| broken(&line))
    }

    /// For each level that occurs, how many clauses have each of [`Verdict::NAMES`].
    #[must_use]
    pub fn counts(&self) -> Vec<(Level, [usize; 4])> {
        let count = |level| {
            Verdict::NAMES.map(|name| {
                let of = |line: &&Line| line.level == level && line.verdict.name() == name;
                self.lines.iter().filter(of).count()
            })
        };
        Level::ALL
            .into_iter()
            .map(|level| (level, count(level)))
            .filter(|(_, counts)| counts.iter().any(|count| *count > 0))
            .collect()
    }

    /// `{conforms, counts: {level: {verdict: n}}, clauses: [{id, level, text, verdict, evidence}]}`
    #[must_use]
    pub fn to_json(&self, strict: bool) -> Value {
        let counts: serde_json::Map<_, _> = self
            .counts()
            .into_iter()
            .map(|(level, counts)| {
                let counts = Verdict::NAMES.into_iter().zip(counts);
                let counts = counts
                    .map(|(name, n)| (name.to_owned(), n.into()))
                    .collect();
                (level.name().to_owned(), Value::Object(counts))
            })
            .collect();
        let line = |line: &Line| {
            json!({
                "id": line.id,
                "level": line.level.name(),
                "text": line.text,
                "verdict": line.verdict.name(),
                "evidence": line.verdict.text(),
            })
        };
        let clauses: Vec<_> = self.lines.iter().map(line).collect();
        json!({"conforms": self.conforms(strict), "counts": counts, "clauses": clauses})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(level: Level, verdict: Verdict) -> Report {
        let (id, text) = ("a/b/1-c", "t");
        Report {
            lines: vec![Line {
                id,
                level,
                text,
                verdict,
            }],
        }
    }

    #[test]
    fn only_what_binds_decides() {
        let failed = |level| report(level, Verdict::Failed("f".to_owned()));
        assert!(!failed(Level::Must).conforms(false));
        assert!(!failed(Level::MustNot).conforms(false));
        assert!(failed(Level::Should).conforms(true));
        assert!(failed(Level::May).conforms(true));
        assert!(failed(Level::Decided).conforms(false));
        assert!(!failed(Level::Decided).conforms(true));
        assert!(report(Level::Must, Verdict::Skipped("s".to_owned())).conforms(true));
        assert!(report(Level::Must, Verdict::NotTestable("n")).conforms(true));
    }

    #[test]
    fn counts_are_by_level_and_verdict() {
        let report = report(Level::Should, Verdict::Failed("f".to_owned()));
        assert_eq!(report.counts(), [(Level::Should, [0, 1, 0, 0])]);
        let json = report.to_json(true);
        assert_eq!(json["counts"]["SHOULD"]["failed"], 1);
        assert_eq!(json["clauses"][0]["evidence"], "f");
    }
}
