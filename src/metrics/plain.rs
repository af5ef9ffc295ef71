//! The figures of one scrape in the text format that Prometheus had before OpenMetrics, in which the name of a family
//! is the name of its samples. <https://prometheus.io/docs/instrumenting/exposition_formats/>

use super::page::{Page, Value};
use super::table::{Kind, Row};
use std::fmt::{self, Write};

/// The figures of these rows as text; a row without figures is left out.
pub(super) fn text(page: Page, rows: impl Iterator<Item = &'static Row>) -> String {
    let mut text = String::new();
    for row in rows {
        family(&mut text, &page, row).expect("a string can always be written to");
    }
    text
}

fn family(text: &mut String, page: &Page, row: &Row) -> fmt::Result {
    let mut samples = page.of(row).peekable();
    if samples.peek().is_none() {
        return Ok(());
    }
    let name = row.name;
    let kind = match row.kind {
        Kind::Info => Kind::Gauge.as_str(),
        Kind::Counter | Kind::Gauge | Kind::Histogram => row.kind.as_str(),
    };
    writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", row.help)?;
    for (values, value) in samples {
        let labels = || {
            let values = values.iter().map(String::as_str);
            row.labels.iter().copied().zip(values)
        };
        match value {
            Value::Whole(value) => writeln!(text, "{name}{} {value}", Labels(labels()))?,
            Value::Float(value) => writeln!(text, "{name}{} {value}", Labels(labels()))?,
            Value::Ranges(read) => {
                let mut below = 0;
                for (upper, count) in &read.buckets {
                    below += count;
                    let upper: String = match upper.is_finite() {
                        true => upper.to_string(),
                        false => "+Inf".to_owned(),
                    };
                    let labels = labels().chain([("le", upper.as_str())]);
                    writeln!(text, "{name}_bucket{} {below}", Labels(labels))?;
                }
                writeln!(text, "{name}_sum{} {}", Labels(labels()), read.sum)?;
                writeln!(text, "{name}_count{} {below}", Labels(labels()))?;
            }
        }
    }
    Ok(())
}

/// Labels in braces, or nothing without any.
struct Labels<I>(I);

impl<'a, I: Iterator<Item = (&'a str, &'a str)> + Clone> fmt::Display for Labels<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = '{';
        for (name, value) in self.0.clone() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            write!(f, "{before}{name}=\"{}\"", value.replace('\n', "\\n"))?;
            before = ',';
        }
        if before == ',' {
            f.write_char('}')
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::{Page, text};
    use crate::meters::{Buckets, Histogram};

    #[test]
    fn every_kind_has_the_form_that_the_format_asks_for() {
        static RANGES: Buckets = Buckets::EVENTS;
        let mut page = Page::default();
        page.add(&table::BUILD, &["1.2\"3\n"], 1);
        page.add(&table::REFUSED, &["busy"], 7);
        page.add_float(&table::PROCESS_CPU, &[], 0.5);
        let histogram = Histogram::new(&RANGES);
        histogram.observe(2);
        histogram.observe(5000);
        page.add_ranges(&table::LOG_BATCH, &[], histogram.read());
        let rows = [
            &table::BUILD,
            &table::REFUSED,
            &table::PROCESS_CPU,
            &table::LOG_BATCH,
            &table::DISK_FREE,
        ];
        let text = text(page, rows.into_iter());
        for line in [
            "# TYPE taskledger_build_info gauge",
            "taskledger_build_info{version=\"1.2\\\"3\\n\"} 1",
            "# TYPE taskledger_refused_total counter",
            "taskledger_refused_total{reason=\"busy\"} 7",
            "process_cpu_seconds_total 0.5",
            "# TYPE taskledger_log_batch_events histogram",
            "taskledger_log_batch_events_bucket{le=\"1\"} 0",
            "taskledger_log_batch_events_bucket{le=\"2\"} 1",
            "taskledger_log_batch_events_bucket{le=\"1000\"} 1",
            "taskledger_log_batch_events_bucket{le=\"+Inf\"} 2",
            "taskledger_log_batch_events_sum 5002",
            "taskledger_log_batch_events_count 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("disk_free"), "it has no figures");
    }
}
