//! The figures of one scrape, and their text. <https://prometheus.io/docs/specs/om/open_metrics_spec/>

use super::table::{Kind, Row, TABLE};
use crate::meters::Reading;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::collections::HashMap;
use std::fmt;

/// A figure.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Whole(u64),
    Float(f64),
    Ranges(Reading),
}

/// Values of the labels of a row, in its order, and the figure.
#[derive(Debug)]
struct Sample {
    labels: Vec<String>,
    value: Value,
}

/// The figures of one scrape.
#[derive(Debug, Default)]
pub(super) struct Page {
    samples: HashMap<&'static str, Vec<Sample>>,
}

impl Page {
    /// Adds a figure of a counter or a gauge.
    pub(super) fn add(&mut self, row: &'static Row, labels: &[&str], value: u64) {
        self.put(row, labels, Value::Whole(value));
    }

    /// The same for a fraction. What is no number is left out.
    pub(super) fn add_float(&mut self, row: &'static Row, labels: &[&str], value: f64) {
        if value.is_finite() {
            self.put(row, labels, Value::Float(value));
        }
    }

    /// The same for something that is only sometimes known.
    pub(super) fn add_known(&mut self, row: &'static Row, labels: &[&str], value: Option<u64>) {
        if let Some(value) = value {
            self.add(row, labels, value);
        }
    }

    /// Adds a histogram.
    pub(super) fn add_ranges(&mut self, row: &'static Row, labels: &[&str], reading: Reading) {
        self.put(row, labels, Value::Ranges(reading));
    }

    fn put(&mut self, row: &'static Row, labels: &[&str], value: Value) {
        assert!(
            labels.len() == row.labels.len(),
            "every label of a metric has a value"
        );
        let ranges = matches!(value, Value::Ranges(_));
        assert!(
            ranges == (row.kind == Kind::Histogram),
            "histograms and nothing else have ranges"
        );
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let samples = self.samples.entry(row.name).or_default();
        samples.push(Sample { labels, value });
    }

    /// The figures of a row, with the values of its labels in its order.
    pub(super) fn of(&self, row: &Row) -> impl Iterator<Item = (&[String], &Value)> {
        let samples = self.samples.get(row.name).into_iter().flatten();
        samples.map(|sample| (sample.labels.as_slice(), &sample.value))
    }

    /// As OpenMetrics text.
    pub(super) fn text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        encode(&mut text, &registry).expect("a string can always be written to");
        text
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for row in TABLE {
            let Some(samples) = self.samples.get(row.name) else {
                continue;
            };
            let (name, unit) = described(row);
            let kind = match row.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
                Kind::Info => MetricType::Info,
            };
            let mut metric = encoder.encode_descriptor(name, row.help, unit.as_ref(), kind)?;
            for sample in samples {
                let values = sample.labels.iter().map(String::as_str);
                let labels: Vec<(&str, &str)> = row.labels.iter().copied().zip(values).collect();
                if row.kind == Kind::Info {
                    metric.encode_info(&labels)?;
                } else if labels.is_empty() {
                    write(&mut metric, row.kind, &sample.value)?;
                } else {
                    let mut of_labels = metric.encode_family(&labels)?;
                    write(&mut of_labels, row.kind, &sample.value)?;
                }
            }
        }
        Ok(())
    }
}

/// The name as the encoder takes it: it adds the unit, and what belongs to the kind.
fn described(row: &'static Row) -> (&'static str, Option<Unit>) {
    let suffix = match row.kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram => "",
    };
    let name = row.name.strip_suffix(suffix).unwrap_or(row.name);
    if let Some(name) = name.strip_suffix("_seconds") {
        (name, Some(Unit::Seconds))
    } else if let Some(name) = name.strip_suffix("_bytes") {
        (name, Some(Unit::Bytes))
    } else {
        (name, None)
    }
}

fn write(metric: &mut MetricEncoder<'_>, kind: Kind, value: &Value) -> fmt::Result {
    let counts = kind == Kind::Counter;
    match value {
        Value::Whole(value) if counts => metric.encode_counter::<NoLabelSet, _, f64>(value, None),
        Value::Float(value) if counts => metric.encode_counter::<NoLabelSet, _, f64>(value, None),
        Value::Whole(value) => metric.encode_gauge(value),
        Value::Float(value) => metric.encode_gauge(value),
        Value::Ranges(read) => {
            metric.encode_histogram::<NoLabelSet>(read.sum, read.count, &read.buckets, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::Page;
    use crate::meters::{Buckets, Histogram};

    #[test]
    fn every_kind_has_the_form_that_the_format_asks_for() {
        static ONE_TWO: Buckets = Buckets::EVENTS;
        let mut page = Page::default();
        page.add(&table::BUILD, &["1.2\"3"], 1);
        page.add(&table::REFUSED, &["busy"], 7);
        page.add_float(&table::PROCESS_CPU, &[], 0.5);
        page.add(&table::DISK_FREE, &[], 9);
        page.add_float(&table::READMODEL_LAG, &[], f64::NAN);
        let histogram = Histogram::new(&ONE_TWO);
        histogram.observe(2);
        page.add_ranges(&table::LOG_BATCH, &[], histogram.read());
        let text = page.text();
        for line in [
            "# TYPE taskledger_build info",
            "taskledger_build_info{version=\"1.2\\\"3\"} 1",
            "# TYPE taskledger_refused counter",
            "taskledger_refused_total{reason=\"busy\"} 7",
            "# UNIT process_cpu_seconds seconds",
            "process_cpu_seconds_total 0.5",
            "taskledger_disk_free_bytes 9",
            "taskledger_log_batch_events_bucket{le=\"1.0\"} 0",
            "taskledger_log_batch_events_bucket{le=\"2.0\"} 1",
            "taskledger_log_batch_events_bucket{le=\"+Inf\"} 1",
            "taskledger_log_batch_events_count 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(
            !text.contains("readmodel_lag") && text.ends_with("# EOF\n"),
            "{text}"
        );
    }
}
