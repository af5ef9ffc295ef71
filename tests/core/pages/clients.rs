//! What the client packages know of methods is made from the table of the server. After a change of it:
//! `TASKLEDGER_WRITE_PAGES=1 cargo nextest run -p taskledger --test core pages::clients`

use super::reference::WRITE;
use super::root;
use std::fmt::Write;
use taskledger::transport::jsonrpc::{Changes, methods};
use taskledger::transport::openrpc::DISCOVER;

/// The methods whose calls change this, in the order of the alphabet.
fn methods_that_change(changes: Changes) -> Vec<&'static str> {
    let table = methods::table().into_iter();
    let such = table.filter(|method| method.changes == changes);
    such.map(|method| method.name).collect()
}

/// The lists of the packages: what each is of, its name in Python and in TypeScript, and the methods.
fn lists() -> [(&'static str, &'static str, &'static str, Vec<&'static str>); 2] {
    // They may be repeated whatever became of the first call.
    let mut reads = methods_that_change(Changes::Nothing);
    reads.push(DISCOVER);
    reads.sort_unstable();
    let mut keyed = methods_that_change(Changes::Flows);
    keyed.sort_unstable();
    [
        (
            "methods that keep an idempotency key",
            "_KEYED",
            "KEYED",
            keyed,
        ),
        ("methods that read", "_READS", "READS", reads),
    ]
}

/// The lines between two marks of a file, which name what the part is of, are `text`.
#[track_caller]
fn is_current(file: &str, (comment, of): (&str, &str), text: &str) {
    let path = root().join(file);
    let whole = std::fs::read_to_string(&path).expect("the file can be read");
    let begin = format!("{comment} generated: {of}\n");
    let end = format!("{comment} end of {of}\n");
    let (before, rest) = whole.split_once(&begin).expect("the part begins");
    let (part, after) = rest.split_once(&end).expect("the part ends");
    if part == text {
        return;
    }
    assert!(
        std::env::var_os(WRITE).is_some(),
        "{file} is out of date: {WRITE}=1 cargo nextest run -p taskledger --test core pages::clients"
    );
    let whole = format!("{before}{begin}{text}{end}{after}");
    std::fs::write(path, whole).expect("the file can be written");
}

#[test]
fn python_knows_the_methods_that_read_and_those_that_keep_keys() {
    for (of, name, _, methods) in lists() {
        let mut text = format!("{name} = frozenset(\n    {{\n");
        for method in methods {
            let _ = writeln!(text, "        \"{method}\",");
        }
        text.push_str("    }\n)\n");
        let file = "clients/python/src/taskledger/_protocol.py";
        is_current(file, ("#", of), &text);
    }
}

#[test]
fn typescript_knows_the_methods_that_read_and_those_that_keep_keys() {
    for (of, _, name, methods) in lists() {
        let mut text = format!("const {name}: ReadonlySet<string> = new Set([\n");
        for method in methods {
            let _ = writeln!(text, "  \"{method}\",");
        }
        text.push_str("]);\n");
        is_current("clients/typescript/src/client.ts", ("//", of), &text);
    }
}
