//! Writes `CONFORMANCE.md`: every clause, and its test or the reason why there is none.

use super::clause::{Check, Clause, Level};
use std::fmt::Write;

/// What stands above the tables.
const HEAD: &str = "\
# Conformance

Every clause of the protocol documents (`data-model`, `validation`, `interface`), and every rule that
this project decided where they are silent (`semantics`), and what RFC-0024 demands of workflow documents
(`workflows`), with the test that looks at it over HTTP or the reason why none can. Run them against any server:

```sh
taskledger-conformance --url http://127.0.0.1:8000
```

Tests are functions below `crates/conformance/src/clauses/`. This page is written by a program; after a
change of clauses: `cargo run -p taskledger-conformance -- --list --markdown > CONFORMANCE.md`
";

/// The page.
///
/// # Panics
/// Never: writing into a string does not fail.
#[must_use]
pub fn markdown(clauses: &[Clause]) -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n| level | clauses | tested |\n|---|---|---|\n");
    for level in Level::ALL {
        let of_level = || clauses.iter().filter(|clause| clause.level == level);
        let tested = of_level().filter(|clause| matches!(clause.check, Check::Test { .. }));
        let (all, tested) = (of_level().count(), tested.count());
        writeln!(page, "| {} | {all} | {tested} |", level.name()).expect("a string takes all");
    }
    let mut section = "";
    for clause in clauses {
        if clause.section() != section {
            section = clause.section();
            let head = "| clause | level | demands | test |\n|---|---|---|---|";
            write!(page, "\n## {section}\n\n{head}\n").expect("a string takes all");
        }
        page.push_str(&row(clause));
    }
    page
}

fn row(clause: &Clause) -> String {
    let same: Vec<_> = clause.same_as.iter().map(|id| format!("`{id}`")).collect();
    let same = match same.as_slice() {
        [] => String::new(),
        ids => format!(" (same as {})", ids.join(", ")),
    };
    let test = match &clause.check {
        Check::Test { name, .. } => format!("`{name}`"),
        Check::NotTestable(reason) => format!("not testable: {}", cell(reason)),
    };
    let number = clause.id.rsplit('/').next().unwrap_or(clause.id);
    let (level, text) = (clause.level.name(), cell(clause.text));
    format!("| {number} | {level} | {text}{same} | {test} |\n")
}

/// A text inside a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
