//! Figures and how they are shown.

use serde::Serialize;
use std::fmt::Write;

/// All figures of a run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    unit: &'static str,
    median: f64,
    min: f64,
    max: f64,
    rounds: usize,
}

impl Report {
    /// Adds a figure, measured once a round.
    pub(crate) fn row(&mut self, name: impl Into<String>, unit: &'static str, figures: &[f64]) {
        let mut sorted = figures.to_vec();
        let median = percentile(&mut sorted, 50.0);
        let (min, max) = (
            sorted.first().copied().unwrap_or(0.0),
            sorted.last().copied().unwrap_or(0.0),
        );
        let row = Row {
            name: name.into(),
            unit,
            median,
            min,
            max,
            rounds: figures.len(),
        };
        eprintln!(
            "{}: {:.2} {} ({:.2} to {:.2})",
            row.name, row.median, row.unit, row.min, row.max
        );
        self.rows.push(row);
    }

    /// Adds how many times `part` goes into `whole`, when both were measured.
    pub(crate) fn ratio(&mut self, name: impl Into<String>, whole: &str, part: &str) {
        let median = |wanted: &str| {
            let row = self.rows.iter().find(|row| row.name == wanted);
            row.map(|row| row.median)
        };
        if let (Some(whole), Some(part)) = (median(whole), median(part)) {
            self.row(name, "", &[whole / part]);
        }
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text =
            String::from("| scenario | median | spread | unit | rounds |\n|---|---|---|---|---|\n");
        for r in &self.rows {
            let _ = writeln!(
                text,
                "| {} | {:.2} | {:.2} to {:.2} | {} | {} |",
                r.name, r.median, r.min, r.max, r.unit, r.rounds
            );
        }
        text
    }
}

/// The value below which `percent` of the figures lie; sorts them. 0 for none.
pub(crate) fn percentile(figures: &mut [f64], percent: f64) -> f64 {
    figures.sort_by(f64::total_cmp);
    let Some(last) = figures.len().checked_sub(1) else {
        return 0.0;
    };
    figures[((percent / 100.0) * last as f64).round() as usize]
}
