//! A server that is scraped, and what a scrape holds.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use taskledger_testkit::server::{Api, Folder, Server};

/// A line of a scrape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

/// All lines of a scrape.
#[derive(Debug)]
pub(crate) struct Scrape {
    pub(crate) text: String,
    pub(crate) samples: Vec<Sample>,
}

impl Scrape {
    /// Reads the text of one. Values of labels in it hold no commas and no quotes.
    pub(crate) fn read(text: String) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let samples = lines.map(sample).collect();
        Self { text, samples }
    }

    /// Metrics as the comments name them, with the kind of each.
    pub(crate) fn families(&self) -> BTreeSet<(String, String)> {
        let types = self
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "));
        let parts = types.map(|line| line.split_once(' ').unwrap());
        parts
            .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
            .collect()
    }

    /// The sum of all lines with this name and these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |sample: &&Sample| {
            sample.name == name
                && labels
                    .iter()
                    .all(|(key, value)| sample.labels.get(*key).is_some_and(|v| v == value))
        };
        self.samples
            .iter()
            .filter(has)
            .map(|sample| sample.value)
            .sum()
    }

    /// How many lines have this name.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.samples
            .iter()
            .filter(|sample| sample.name == name)
            .count()
    }
}

fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels
        .trim_end_matches('}')
        .split(',')
        .filter(|part| !part.is_empty());
    let labels = labels.map(|part| {
        let (key, value) = part.split_once('=').unwrap();
        (key.to_owned(), value.trim_matches('"').to_owned())
    });
    Sample {
        name: name.to_owned(),
        labels: labels.collect(),
        value: value.parse().unwrap(),
    }
}

/// A server that answers scrapes beside calls.
pub(crate) async fn server(folder: &Folder) -> Server {
    Server::start_with(folder, &["--metrics"]).await
}

/// What it says now.
pub(crate) async fn scrape(api: &Api) -> Scrape {
    let url = format!("{}metrics", api.url);
    let response = api.http.get(url).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let kind = response.headers()["content-type"].to_str().unwrap();
    assert!(kind.starts_with("application/openmetrics-text; version=1.0.0"));
    let text = response.text().await.unwrap();
    assert!(text.ends_with("# EOF\n"), "{text}");
    Scrape::read(text)
}

/// A group of one task for each of these methods; tasks of `sleep_executor` take a while.
pub(crate) fn tree(methods: &[&str]) -> Value {
    let mut tasks = vec![json!({"id": "root", "name": "root"})];
    for (n, method) in methods.iter().enumerate() {
        let id = format!("t{n}");
        tasks.push(json!({
            "id": id, "name": id, "parent_id": "root", "schemas": {"method": method}, "inputs": {}
        }));
    }
    json!({"tasks": tasks})
}
