//! What the client packages know of methods is made from the table of the server. After a change of it:
//! `TASKLEDGER_WRITE_PAGES=1 cargo nextest run -p taskledger --test core pages::clients`

use super::reference::WRITE;
use super::root;
use std::fmt::Write;
use taskledger::transport::jsonrpc::{Changes, methods};
use taskledger::transport::openrpc::DISCOVER;

/// The methods that only read, which may be repeated whatever became of the first call; in the order of the alphabet.
fn reads() -> Vec<&'static str> {
    let table = methods::table().into_iter();
    let reading = table.filter(|method| method.changes == Changes::Nothing);
    let mut names: Vec<_> = reading.map(|method| method.name).collect();
    names.push(DISCOVER);
    names.sort_unstable();
    names
}

/// The lines between two marks of a file are `text`.
#[track_caller]
fn is_current(file: &str, comment: &str, text: &str) {
    let path = root().join(file);
    let whole = std::fs::read_to_string(&path).expect("the file can be read");
    let begin = format!("{comment} generated: methods that read\n");
    let end = format!("{comment} end of methods that read\n");
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
fn python_knows_the_methods_that_read() {
    let mut text = "_READS = frozenset(\n    {\n".to_owned();
    for name in reads() {
        let _ = writeln!(text, "        \"{name}\",");
    }
    text.push_str("    }\n)\n");
    is_current("clients/python/src/taskledger/_protocol.py", "#", &text);
}

#[test]
fn typescript_knows_the_methods_that_read() {
    let mut text = "const READS: ReadonlySet<string> = new Set([\n".to_owned();
    for name in reads() {
        let _ = writeln!(text, "  \"{name}\",");
    }
    text.push_str("]);\n");
    is_current("clients/typescript/src/client.ts", "//", &text);
}
