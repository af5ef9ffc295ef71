//! Blocks of code in the documentation are what they seem to be.

use super::shell::{self, VALUE};
use super::{all, page};
use clap::CommandFactory;
use clap::error::ErrorKind;
use serde_json::Value;
use std::collections::BTreeSet;
use taskledger::cli::Cli;
use taskledger::transport::jsonrpc::methods;
use taskledger::transport::openrpc::DISCOVER;
use taskledger_testkit::pages::Page;

/// Options whose value is JSON.
const JSON_OPTIONS: [&str; 8] = [
    "-d",
    "--data",
    "--trigger",
    "--defaults",
    "--parameters",
    "--slow-inputs",
    "--inputs",
    "--params",
];

/// Pages for users.
fn guides() -> Vec<Page> {
    let internal = |page: &Page| {
        page.name.starts_with("docs/decisions/")
            || page.name.starts_with("bench/")
            || page.name == "ARCHITECTURE.md"
    };
    all().into_iter().filter(|page| !internal(page)).collect()
}

/// What each page's blocks of `language` are blamed for.
fn faults(language: &str, check: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut count = 0;
    for page in guides() {
        for block in page.blocks() {
            if block.language == language {
                count += 1;
                let found = check(&block.text);
                let place = format!("{}:{}", page.name, block.line);
                faults.extend(found.into_iter().map(|fault| format!("{place}: {fault}")));
            }
        }
    }
    assert!(count > 0, "there are blocks of `{language}`");
    faults
}

#[test]
fn every_block_of_json_is_json() {
    let faults = faults("json", |text| {
        let read: Result<Value, _> = serde_json::from_str(text);
        read.err()
            .map(|error| error.to_string())
            .into_iter()
            .collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_workflow_document_has_no_faults() {
    let faults = faults("yaml", |text| {
        if !text.contains("openintent") {
            return Vec::new();
        }
        let report = taskledger_workflows::read(text, false);
        let told = report.errors.iter().map(|fault| format!("{fault:?}"));
        told.collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A value for a word that stands for one: `ID`, `FILE`.
fn filled(word: &str) -> Option<String> {
    let is_name =
        |word: &str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    match word {
        "..." => None,
        ".." => Some("postgres://host/database".to_owned()),
        "TIME" => Some("2026-01-15T10:00:00Z".to_owned()),
        "URL" => Some("https://example.com/hook".to_owned()),
        "DIR" | "FILE" | "NAME" | "EMPTY" | "SCOPES" | "TYPE" => Some(word.to_lowercase()),
        word if is_name(word) => Some(VALUE.to_owned()),
        word => Some(word.to_owned()),
    }
}

/// What the program would say of these arguments.
fn refused(words: &[String]) -> Option<String> {
    let before = std::iter::once("").chain(words.iter().map(String::as_str));
    let words =
        words
            .iter()
            .zip(before)
            .filter_map(|(word, before)| match (before, word.as_str()) {
                // What another command prints.
                ("--head", VALUE) => Some(format!("{}@1", "0f".repeat(32))),
                (_, word) => filled(word),
            });
    let refusal = Cli::command().try_get_matches_from(words).err()?;
    let is_help = matches!(
        refusal.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    (!is_help).then(|| refusal.to_string())
}

#[test]
fn the_program_knows_every_command_that_is_shown() {
    let faults = faults("sh", |text| {
        let commands = shell::commands(text);
        let ours = commands.iter().filter(|words| words[0] == "taskledger");
        ours.filter_map(|words| Some(format!("{}\n{}", words.join(" "), refused(words)?)))
            .collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Whether a block shows commands where no test reads them.
fn hides_commands(language: &str, text: &str) -> bool {
    match language {
        "sh" => false,
        "bash" | "console" | "shell" | "shell-session" | "terminal" | "zsh" => true,
        _ => text.lines().any(|line| line.starts_with("$ ")),
    }
}

#[test]
fn commands_are_in_blocks_of_sh_and_their_output_is_not() {
    let mut faults = Vec::new();
    for page in guides() {
        for block in page.blocks() {
            if hides_commands(&block.language, &block.text) {
                let place = format!("{}:{}", page.name, block.line);
                faults.push(format!(
                    "{place}: write commands as `sh`, their output as `text`"
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(hides_commands("console", "$ taskledger tasks list\n"));
    assert!(hides_commands("text", "x\n$ taskledger tasks list\n"));
    assert!(!hides_commands("text", "sound: 3 events in 1 flow\n"));
}

#[test]
fn json_in_commands_is_json_and_names_methods_that_exist() {
    let mut known: BTreeSet<_> = methods::table().iter().map(|m| m.name.to_owned()).collect();
    known.insert(DISCOVER.to_owned());
    let of_a2a = |name: &str| !name.contains('.');
    let check_method = |name: &str| {
        let is_known = known.contains(name) || of_a2a(name);
        (!is_known).then(|| format!("there is no method `{name}`"))
    };
    let faults = faults("sh", |text| {
        let mut faults = Vec::new();
        for words in shell::commands(text) {
            if words[0] == "rpc" && words.len() == 3 {
                faults.extend(check_method(&words[1]));
                let params: Result<Value, _> = serde_json::from_str(&words[2]);
                let fault = params.err().filter(|_| !words[2].contains(VALUE));
                faults.extend(fault.map(|error| format!("{}: {error}", words[2])));
            }
            for pair in words.windows(2) {
                if !JSON_OPTIONS.contains(&pair[0].as_str()) || !pair[1].starts_with(['{', '[']) {
                    continue;
                }
                match serde_json::from_str::<Value>(&pair[1]) {
                    Ok(value) => faults.extend(value["method"].as_str().and_then(check_method)),
                    // A number is put in by the shell.
                    Err(_) if pair[1].contains(VALUE) => {}
                    Err(error) => faults.push(format!("{}: {error}", pair[1])),
                }
            }
        }
        faults
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn commands_that_do_not_exist_are_noticed() {
    let words = |text: &str| shell::commands(text).remove(0);
    assert_eq!(refused(&words("taskledger tasks get ID")), None);
    assert_eq!(refused(&words("taskledger run --help")), None);
    assert!(refused(&words("taskledger tasks got ID")).is_some());
    assert!(refused(&words("taskledger tasks get ID --colour")).is_some());
}

#[test]
fn the_workflow_of_the_readme_is_the_example() {
    let readme = page("README.md");
    let example = include_str!("../../../examples/hello.json");
    let shown = readme
        .blocks()
        .into_iter()
        .any(|block| block.text.contains(example));
    assert!(shown, "README.md shows examples/hello.json as it is");
}
