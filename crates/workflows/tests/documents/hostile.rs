//! Hostile documents: each is answered, within limits of time and memory.

use super::{document, errors, sound};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use taskledger_workflows::{limits, read, read_json};

/// The first error, which is short whatever the document.
fn refused(text: &str) -> String {
    let report = read(text, false);
    assert!(report.workflow.is_none());
    let first = errors(&report).swap_remove(0);
    assert!(first.len() < 3000, "{} bytes", first.len());
    first
}

#[test]
fn billion_laughs_are_counted_and_not_told() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(text, "a{level}: &a{level} [{aliases}]").expect("memory can be written to");
    }
    let max = limits::NODES_MAX;
    assert!(refused(&text).ends_with(&format!(
        "more than {max} keys and values, counting those behind aliases"
    )));
    let many = format!("a: &a x\nb: [{}]\n", vec!["*a"; 1_001].join(", "));
    assert!(
        refused(&many).ends_with("more than 1000 aliases"),
        "{}",
        refused(&many)
    );
    let long = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(100_000),
        vec!["*a"; 100].join(", ")
    );
    assert!(refused(&long).ends_with("bytes of text, counting those behind aliases"));
    let itself = refused("a: &a [*a]\n");
    assert_eq!(itself, "1:8 : an alias stands inside of what it stands for");
    let nested: String = (1..40)
        .map(|i| format!("a{i}: &a{i} [[*a{}]]\n", i - 1))
        .collect();
    let deep = format!("a0: &a0 x\n{nested}");
    assert!(
        refused(&deep).ends_with("more than 64 levels of maps and lists, with this alias"),
        "{}",
        refused(&deep)
    );
}

#[test]
fn a_text_over_the_limit_is_not_parsed() {
    let max = limits::DOCUMENT_BYTES_MAX;
    let text = "a: b\n".repeat(2 * 1024 * 1024);
    let expected = format!(
        "-:- : the document has {} bytes, the limit is {max}",
        text.len()
    );
    assert_eq!(refused(&text), expected);
    assert!(refused(&"x".repeat(max)).contains("a workflow document is a map"));
    for value in [
        json!("x".repeat(10 * max)),
        json!({"x".repeat(10 * max): null}),
        json!({"a": vec!["x".repeat(max / 4); 40]}),
    ] {
        let report = read_json(&value, false);
        let expected = format!("-:- : more than {max} bytes of text");
        assert_eq!(errors(&report), [expected]);
    }
}

#[test]
fn deep_texts_end_at_the_limit_of_levels() {
    for unit in [
        "[",
        "{a: ",
        "- ",
        "? ",
        "- - ? ",
        "[{a: [",
        "a:\n ",
        "!!map {a: ",
        "&a [",
        "[? ",
    ] {
        let text = unit.repeat(limits::DOCUMENT_BYTES_MAX / unit.len());
        refused(&text);
    }
    let mut block = String::new();
    (0..1000).for_each(|level| {
        writeln!(block, "{}a:", " ".repeat(level)).expect("memory can be written to")
    });
    assert_eq!(
        refused(&block),
        "65:65 : more than 64 levels of maps and lists"
    );
    let mut value = json!(1);
    (0..100_000).for_each(|_| value = Value::Array(vec![std::mem::take(&mut value)]));
    let report = read_json(&value, false);
    assert_eq!(
        errors(&report),
        ["-:- : more than 64 levels of maps and lists"]
    );
    // Dropping it would recurse, which is the caller's affair.
    std::mem::forget(value);
}

#[test]
fn texts_that_repeat_one_thing_are_answered() {
    let bytes = limits::DOCUMENT_BYTES_MAX / 8;
    for unit in [
        "a: ",
        "*a ",
        "&a ",
        "! ",
        "\"",
        "'",
        "\" ",
        "' ",
        "#",
        "# ",
        " ",
        "\n",
        "\r",
        "\t",
        "---\n",
        "...\n",
        "%a\n",
        "|\n",
        ">\n",
        ",",
        ", ",
        "]",
        "}",
        ":",
        "::",
        "?",
        "-",
        "a\n",
        "a b ",
        "- a\n",
        "- \n",
        "a: &a\n",
        "\u{feff}",
        "é",
        "~\n",
        "[] ",
        "{}\n",
        "!<a> ",
        "%TAG !a! b\n",
        "\\",
        "@",
        "`",
        "\"\\x",
        "x\n\n",
        "<<: a\n",
        "[a]: ",
        "\u{2028}",
        "{\n",
        "[\n",
    ] {
        refused(&unit.repeat(bytes / unit.len()));
        refused(&format!("a: {}", unit.repeat(bytes / unit.len() - 1)));
        refused(&format!("[{}", unit.repeat(bytes / unit.len() - 1)));
    }
}

fn chain(phases: usize) -> String {
    let mut text = String::from("  p0: {assign: a, outputs: {k: any}}\n");
    for i in 1..phases {
        let before = i - 1;
        writeln!(
            text,
            "  p{i}: {{assign: a, depends_on: [p{before}], inputs: {{k: p{before}.k}}, outputs: {{k: any}}}}"
        )
        .expect("memory can be written to");
    }
    document(&text)
}

#[test]
fn a_chain_is_read_up_to_the_limits_and_refused_beyond() {
    let workflow = sound(&chain(6_000));
    assert_eq!(workflow.phases.len(), 6_000);
    assert!(refused(&chain(100_000)).contains("the limit is 1048576"));
    let phase = |i: usize| match i {
        0 => json!({"assign": "a"}),
        i => json!({"assign": "a", "depends_on": [format!("p{}", i - 1)]}),
    };
    let phases = (0..100_000).map(|i| (format!("p{i}"), phase(i)));
    let value = json!({"openintent": "1", "info": {"name": "n"}, "workflow": phases.collect::<Map<_, _>>()});
    assert_eq!(
        errors(&read_json(&value, false)),
        ["-:- : more than 100000 keys and values"]
    );
    let ring = chain(3_000).replacen("p0: {", "p0: {depends_on: [p2999], ", 1);
    let told = refused(&ring);
    assert!(
        told.starts_with(
            "4:8 workflow.p0.depends_on: phases depend on each other in a cycle: `p0` -> "
        ),
        "{told}"
    );
    assert!(told.ends_with(" -> … (3000 phases) -> `p0`"), "{told}");
}

#[test]
fn thousands_of_faults_are_counted() {
    let phases: String = (0..6_000)
        .map(|i| format!("  p{i}: {{asign: a, depends_on: [q{i}], inputs: {{k: r{i}.k}}}}\n"))
        .collect();
    let report = read(&document(&phases), true);
    assert_eq!(report.errors.len(), limits::FAULTS_MAX + 1);
    let last = report.errors.last().expect("there are errors");
    assert_eq!(
        (&*last.reason, last.line),
        ("23000 more are not listed", None)
    );
    let long = "k".repeat(100_000);
    let repeated = format!("{long}: {{{}}}\n", vec!["a: 1"; 20_000].join(", "));
    let report = read(&repeated, false);
    assert!(
        report
            .errors
            .iter()
            .all(|fault| fault.path.len() < 300 && fault.reason.len() < 300)
    );
}

#[test]
fn odd_characters_are_read_or_refused_by_name() {
    assert!(refused("a: b\0\n").contains("1:5 : YAML does not allow the character U+0000"));
    assert!(
        refused("a: b\r\nc: \u{7}\n").contains("2:4 : YAML does not allow the character U+0007")
    );
    for c in ['\u{7f}', '\u{80}', '\u{9f}', '\u{fffe}', '\u{ffff}'] {
        let text = document(&format!("  a: {{assign: \"x{c}\"}}\n"));
        assert_eq!(sound(&text).phases[0].assign, format!("x{c}"));
    }
    let names = "  \"a\\u0000b\": {assign: x}\n  \"e\\u0301\": {assign: x}\n  é: {assign: x}\n";
    let told = errors(&read(&document(names), false));
    assert_eq!(
        told,
        [r#"4:3 workflow["a\u0000b"]: the name of a phase must not hold control characters"#]
    );
    let combining = sound(&document(
        "  \"e\\u0301\": {assign: x}\n  é: {assign: x, depends_on: [é]}\n"
            .replace("depends_on: [é]", "depends_on: [\"e\\u0301\"]")
            .as_str(),
    ));
    assert_eq!(combining.phases[1].depends_on, ["e\u{301}"]);
    let plain = document("  p: {assign: x}\n");
    let expected = sound(&plain);
    assert_eq!(sound(&format!("\u{feff}{plain}")), expected);
    assert_eq!(sound(&plain.replace('\n', "\r\n")), expected);
    assert_eq!(
        sound(&format!("%YAML 1.2\n---\n{plain}...\n# end\n")),
        expected
    );
    let tabs = read(&document("  p:\n\tassign: x\n"), false);
    assert_eq!(
        tabs.errors[0].suggestion.as_deref(),
        Some("indent with spaces, not with tabs")
    );
    assert_eq!(tabs.errors[0].line, Some(5));
    for empty in [
        "",
        "\n\n",
        "# only a comment\n",
        "\u{feff}",
        "---\n...\n",
        "~",
    ] {
        let told = refused(empty);
        assert!(
            told.contains("empty") || told.contains("is a map, found nothing"),
            "{empty:?}: {told}"
        );
    }
    let two = refused(&format!("{plain}---\n{plain}"));
    assert_eq!(two, "5:1 : a second document begins here");
}

/// What a document of 1,000 phases costs; run with `--release --nocapture` to measure.
#[test]
fn a_thousand_phases_are_read() {
    let text = chain(1_000);
    let begun = std::time::Instant::now();
    let workflow = sound(&text);
    let spent = begun.elapsed();
    println!(
        "{} bytes, {} phases: {spent:?}",
        text.len(),
        workflow.phases.len()
    );
}
