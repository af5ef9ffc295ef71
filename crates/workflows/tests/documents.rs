//! Workflow documents from outside: which are read, which are refused and where, and the tasks of a run.

#[path = "documents/compatibility.rs"]
mod compatibility;
#[path = "documents/costly.rs"]
mod costly;
#[path = "documents/diff.rs"]
mod diff;
#[path = "documents/faults.rs"]
mod faults;
#[path = "documents/fit.rs"]
mod fit;
#[path = "documents/hostile.rs"]
mod hostile;
#[path = "documents/odd.rs"]
mod odd;
#[path = "documents/play.rs"]
mod play;
#[path = "documents/properties.rs"]
mod properties;
#[path = "documents/rfc.rs"]
mod rfc;
#[path = "documents/schemas.rs"]
mod schemas;
#[path = "documents/skip.rs"]
mod skip;
#[path = "documents/tasks.rs"]
mod tasks;
#[path = "documents/timers.rs"]
mod timers;
#[path = "documents/together.rs"]
mod together;

use taskledger_workflows::{Report, Workflow, read};

/// The complete example of RFC-0024, section 10.
const EXAMPLE: &str = include_str!("documents/complete_example.yaml");

/// A document with these phases, which begin in line 4.
fn document(phases: &str) -> String {
    format!("openintent: \"1.0\"\ninfo: {{name: test}}\nworkflow:\n{phases}")
}

fn sound(text: &str) -> Workflow {
    let report = read(text, false);
    assert_eq!(report.errors, [], "{text}");
    report
        .workflow
        .expect("a document without errors is a workflow")
}

/// `line:column path: reason` of each error.
fn errors(report: &Report) -> Vec<String> {
    let place = |number: Option<u32>| number.map_or("-".to_owned(), |n| n.to_string());
    let faults = report.errors.iter();
    let told = faults.map(|f| {
        format!(
            "{}:{} {}: {}",
            place(f.line),
            place(f.column),
            f.path,
            f.reason
        )
    });
    told.collect()
}
