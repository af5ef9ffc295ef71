//! The memory that reading takes, whatever the document is. A program of its own: the peak is that of the process.
#![cfg(target_os = "linux")]

use serde_json::{Map, Value, json};
use std::fmt::Write;
use taskledger_workflows::{UnfitTrigger, limits, read};

/// Mebibytes that no document may take: two hundred times the largest text, for its tree, its tasks and its faults.
const PEAK_MIB_MAX: u64 = 200;

/// The most memory that this process has had so far.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    let kib: u64 = kib.and_then(|kib| kib.parse().ok()).expect("a number");
    kib / 1024
}

fn document(phases: &str) -> String {
    format!("openintent: '1'\ninfo: {{name: n}}\nworkflow:\n{phases}")
}

/// As many phases as the limits allow, each of them `phase`.
fn phases(phase: impl Fn(usize) -> String) -> String {
    let mut text = document("");
    let mut i = 0;
    while i < limits::PHASES_MAX {
        let phase = phase(i);
        if text.len() + phase.len() > limits::DOCUMENT_BYTES_MAX {
            break;
        }
        text.push_str(&phase);
        i += 1;
    }
    text
}

fn bombs() -> Vec<(&'static str, String)> {
    let bytes = limits::DOCUMENT_BYTES_MAX;
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(laughs, "a{level}: &a{level} [{aliases}]").expect("memory can be written to");
    }
    let anchor = format!("&a {{k: {}}}", "x".repeat(4_000));
    let aliases = vec!["*a"; limits::ALIASES_MAX].join(", ");
    let shared = format!(
        "  p: {{assign: x, constraints: [], initial_state: {{a: {anchor}, l: [{aliases}]}}}}\n"
    );
    let field = |i| format!("{}{i}: any", "f".repeat(200));
    let fields: Vec<String> = (0..2_000).map(field).collect();
    let types = format!("types: {{T: {{{}}}}}\n", fields.join(", "));
    let typed = |count: usize| -> String {
        let phase = |i| format!("  p{i}: {{assign: x, outputs: {{o: any}}}}\n");
        (0..count).map(phase).collect()
    };
    let inputs = |count: usize| -> String {
        let wire = "{from: p.o, type: any}";
        let phase = |i| format!("  p{i}: {{assign: x, depends_on: [p], inputs: {{k: {wire}}}}}\n");
        let phases: String = (0..count).map(phase).collect();
        format!("  p: {{assign: x}}\n{phases}")
    };
    vec![
        ("aliases of aliases", laughs),
        ("aliases of a long text", document(&shared)),
        ("10 MB", "a: b\n".repeat(2 * bytes)),
        ("open lists", "[".repeat(bytes)),
        ("keys", "a: ".repeat(bytes / 3)),
        ("equal keys", "a: 1\n".repeat(bytes / 5)),
        ("short lines", "- \n".repeat(bytes / 3)),
        (
            "a chain of phases",
            phases(|i| match i {
                0 => "  p0: {assign: x}\n".to_owned(),
                i => format!(
                    "  p{i}: {{assign: x, depends_on: [p{}], inputs: {{k: p{}.k}}}}\n",
                    i - 1,
                    i - 1
                ),
            }),
        ),
        (
            "faulty phases",
            phases(|i| format!("  p{i}: {{asign: x, inputs: {{k: q.k}}}}\n")),
        ),
        (
            "small phases",
            phases(|i| format!("  p{i}: {{assign: x}}\n")),
        ),
        (
            "few typed phases",
            format!("{}{types}", document(&typed(30))),
        ),
        (
            "many typed phases",
            format!("{}{types}", document(&typed(9_000))),
        ),
        (
            "many typed inputs",
            format!("{}{types}", document(&inputs(3_000))),
        ),
    ]
}

#[test]
fn no_document_takes_more_memory_than_a_fixed_multiple_of_the_largest() {
    for (name, text) in bombs() {
        let report = read(&text, true);
        assert_eq!(
            report.workflow.is_some(),
            report.errors.is_empty(),
            "{name}"
        );
        if let Some(workflow) = report.workflow {
            match workflow.tasks(&Map::new(), None) {
                Ok(tasks) => assert_eq!(tasks.len(), workflow.phases.len() + 1),
                Err(UnfitTrigger::Lacking(lacking)) => assert!(!lacking.is_empty()),
                Err(other) => panic!("{name}: there is no trigger: {other}"),
            }
        }
        let peak = peak_mib();
        println!("{name}: {peak} MiB");
        assert!(peak <= PEAK_MIB_MAX, "{name}: {peak} MiB");
    }
    let value: Value = json!({"a": vec!["x".repeat(1_000); 10_000]});
    assert!(
        !taskledger_workflows::read_json(&value, false)
            .errors
            .is_empty()
    );
    assert!(peak_mib() <= PEAK_MIB_MAX);
}
