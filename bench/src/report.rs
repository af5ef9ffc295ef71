//! Figures and how they are shown.

mod aims;

use crate::machine::Machine;
use crate::meter::Cost;
use serde::Serialize;
use std::fmt::Write;

/// All figures of a run.
#[derive(Debug, Default)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aim: Option<aims::Judged>,
}

/// The row that says what the machine can do at best.
#[derive(Debug, Serialize)]
struct Limit {
    row: String,
    /// So many times the figure of that row is the limit (also from unit to unit).
    times: f64,
    /// The figure, divided by the limit.
    ratio: Option<f64>,
}

/// Figures of a scenario, one value a round.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<Figure>);

#[derive(Debug)]
struct Figure {
    what: String,
    unit: &'static str,
    values: Vec<f64>,
    limit: Option<(String, f64)>,
}

impl Figures {
    /// The value of one more round.
    pub(crate) fn add(&mut self, what: &str, unit: &'static str, value: f64) {
        match self.0.iter_mut().find(|figure| figure.what == what) {
            Some(figure) => figure.values.push(value),
            None => self.0.push(Figure {
                what: what.to_owned(),
                unit,
                values: vec![value],
                limit: None,
            }),
        }
    }

    /// The values of a figure so far.
    pub(crate) fn values(&self, what: &str) -> Vec<f64> {
        let figure = self.0.iter().find(|figure| figure.what == what);
        figure.map_or_else(Vec::new, |figure| figure.values.clone())
    }

    /// What a figure cannot be better than: so many times that of a row.
    pub(crate) fn limit(&mut self, what: &str, row: impl Into<String>, times: f64) {
        if let Some(figure) = self.0.iter_mut().find(|figure| figure.what == what) {
            figure.limit = Some((row.into(), times));
        }
    }

    /// Processor time of so many operations.
    pub(crate) fn cpu(&mut self, cost: &Cost, each: &str, operations: f64) {
        let mut add = |who: &str, seconds: f64| {
            let what = format!("{who} CPU per {each}");
            self.add(&what, "us", seconds * 1e6 / operations);
        };
        add("server", cost.server_s);
        if let Some(seconds) = cost.database_s {
            add("database", seconds);
        }
        add("load generator", cost.client_s);
    }

    /// Syncs of so many operations.
    pub(crate) fn syncs(&mut self, cost: &Cost, each: &str, operations: f64) {
        let what = format!("syncs per {each}");
        self.add(&what, "", cost.commits / operations);
        if let Some(flushes) = cost.flushes {
            let what = format!("flushes of the disk, by all programs, per {each}");
            self.add(&what, "", flushes / operations);
        }
    }
}

impl Report {
    /// Adds a figure, measured once a round.
    pub(crate) fn row(&mut self, name: impl Into<String>, unit: &'static str, figures: &[f64]) {
        let mut sorted = figures.to_vec();
        let median = percentile(&mut sorted, 50.0);
        let row = Row {
            name: name.into(),
            unit,
            median,
            min: sorted.first().copied().unwrap_or(0.0),
            max: sorted.last().copied().unwrap_or(0.0),
            rounds: figures.len(),
            limit: None,
            aim: None,
        };
        eprintln!(
            "{}: {} {} ({} to {})",
            row.name,
            number(row.median),
            row.unit,
            number(row.min),
            number(row.max)
        );
        self.rows.push(row);
    }

    /// Adds the figures of a scenario.
    pub(crate) fn figures(&mut self, scenario: &str, figures: Figures) {
        for figure in figures.0 {
            let name = format!("{scenario}: {}", figure.what);
            self.row(name, figure.unit, &figure.values);
            if let (Some(row), Some((limit, times))) = (self.rows.last_mut(), figure.limit) {
                row.limit = Some(Limit {
                    row: limit,
                    times,
                    ratio: None,
                });
            }
        }
    }

    /// The median of a row that was measured.
    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.name == name);
        row.map(|row| row.median)
    }

    /// Holds every figure beside its limit and its aim; the last step.
    pub(crate) fn judge(&mut self) {
        let ratios: Vec<Option<f64>> = self
            .rows
            .iter()
            .map(|row| {
                let limit = row.limit.as_ref()?;
                Some(row.median / (self.median(&limit.row)? * limit.times))
            })
            .collect();
        for (row, ratio) in self.rows.iter_mut().zip(ratios) {
            if let Some(limit) = &mut row.limit {
                limit.ratio = ratio;
            }
            row.aim = aims::judge(&row.name, row.median, ratio);
        }
    }

    pub(crate) fn json(&self, machine: &Machine) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            machine: &'a Machine,
            figures: &'a [Row],
        }
        let document = Document {
            machine,
            figures: &self.rows,
        };
        serde_json::to_string_pretty(&document).unwrap_or_default()
    }

    pub(crate) fn markdown(&self, machine: &Machine) -> String {
        let mut text = format!(
            "{}. Medians; limits are what the machine did at best in the same run.\n\n\
             | figure | median | spread | unit | rounds | of the limit | aim |\n\
             |---|---|---|---|---|---|---|\n",
            machine.text()
        );
        for r in &self.rows {
            let limit = r.limit.as_ref().and_then(|limit| {
                let times = match limit.times {
                    1.0 => String::new(),
                    times => format!("{} x ", number(times)),
                };
                Some(format!("{:.2} of {times}{}", limit.ratio?, limit.row))
            });
            let aim = r.aim.as_ref().map(aims::Judged::text);
            let _ = writeln!(
                text,
                "| {} | {} | {} to {} | {} | {} | {} | {} |",
                r.name,
                number(r.median),
                number(r.min),
                number(r.max),
                r.unit,
                r.rounds,
                limit.unwrap_or_default(),
                aim.unwrap_or_default(),
            );
        }
        text
    }
}

/// With as many digits as mean something.
pub(crate) fn number(figure: f64) -> String {
    match figure.abs() {
        large if large >= 1000.0 => grouped(figure),
        some if some >= 100.0 => format!("{figure:.0}"),
        few if few >= 10.0 && figure.fract() != 0.0 => format!("{figure:.1}"),
        whole if whole >= 1.0 && figure.fract() == 0.0 => format!("{figure:.0}"),
        0.0 => "0".to_owned(),
        small if small < 0.1 => format!("{figure:.4}"),
        _ => format!("{figure:.2}"),
    }
}

/// Whole, with a comma before each three digits.
fn grouped(figure: f64) -> String {
    let digits = format!("{:.0}", figure.abs());
    let mut text = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    match figure < 0.0 {
        true => format!("-{text}"),
        false => text,
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

#[cfg(test)]
mod tests {
    use super::{Figures, Report, number};

    #[test]
    fn figures_keep_the_digits_that_mean_something() {
        let shown = [
            1_234_567.8,
            1000.0,
            512.3,
            12.34,
            1.234,
            0.0123,
            0.0,
            -2500.0,
        ]
        .map(number);
        let expected = [
            "1,234,568",
            "1,000",
            "512",
            "12.3",
            "1.23",
            "0.0123",
            "0",
            "-2,500",
        ];
        assert_eq!(shown, expected.map(str::to_owned));
    }

    #[test]
    fn a_figure_is_held_against_its_limit_and_its_aim() {
        let mut report = Report::default();
        report.row("disk: append 4 KiB + fdatasync, p50", "us", &[100.0]);
        let mut figures = Figures::default();
        for round in [11.0, 10.0, 15.0] {
            figures.add("submission to end", "ms", round);
        }
        figures.limit(
            "submission to end",
            "disk: append 4 KiB + fdatasync, p50",
            0.1,
        );
        report.figures("chain of 100, launched", figures);
        report.judge();
        let row = &report.rows[1];
        assert_eq!(row.median, 11.0);
        let ratio = row.limit.as_ref().and_then(|limit| limit.ratio);
        assert!(ratio.is_some_and(|ratio| (ratio - 1.1).abs() < 1e-9));
        assert_eq!(
            row.aim.as_ref().map(super::aims::Judged::text).as_deref(),
            Some("25 or less, or 1.3 of the limit: met")
        );
    }
}
