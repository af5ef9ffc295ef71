//! The parts of the reference that are made from the code. After a change of the code:
//! `TASKLEDGER_WRITE_PAGES=1 cargo nextest run -p taskledger --test core pages::reference`

use super::{page, root};
use clap::{Arg, Command, CommandFactory};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;
use taskledger::cli::Cli;
use taskledger::transport::jsonrpc::{ErrorKind, methods};
use taskledger::transport::openrpc::document;
use taskledger_auth::Scope;
use taskledger_testkit::pages::pages;

/// Set to write the parts instead of comparing them.
pub(super) const WRITE: &str = "TASKLEDGER_WRITE_PAGES";
/// Characters of an example that stands on one line.
const LINE_CHARS_MAX: usize = 120;

/// The part `name` of the page `file` is `text`.
#[track_caller]
fn is_current(file: &str, name: &str, text: &str) {
    let page = page(file).text;
    let (begin, end) = (
        format!("<!-- generated: {name} -->\n"),
        format!("<!-- end of {name} -->"),
    );
    let (before, rest) = page.split_once(&begin).expect("the part begins");
    let (part, after) = rest.split_once(&end).expect("the part ends");
    if part == text {
        return;
    }
    assert!(
        std::env::var_os(WRITE).is_some(),
        "{file} is out of date: {WRITE}=1 cargo nextest run -p taskledger --test core pages::reference"
    );
    let page = format!("{before}{begin}{text}{end}{after}");
    std::fs::write(root().join(file), page).expect("the page can be written");
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('\n', " ")
        .trim()
        .to_owned()
}

#[test]
fn the_methods_are_those_of_the_openrpc_document() {
    let document = document(&methods::table(), None);
    let mut text = String::new();
    for method in document["methods"].as_array().expect("methods") {
        write_method(&mut text, method);
    }
    text.push('\n');
    is_current("docs/reference/api.md", "methods", &text);
}

fn scopes_of(method: &Value) -> impl Iterator<Item = &str> {
    let scopes = method["x-scope"].as_array().into_iter().flatten();
    scopes.filter_map(Value::as_str)
}

#[test]
fn the_methods_of_each_scope_are_those_of_the_openrpc_document() {
    let document = document(&methods::table(), None);
    let mut by_scope: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for method in document["methods"].as_array().expect("methods") {
        let name = format!("`{}`", said(method, "name"));
        let mut scopes: Vec<_> = scopes_of(method).collect();
        if scopes.is_empty() {
            scopes.push("");
        }
        for scope in scopes {
            by_scope.entry(scope).or_default().push(name.clone());
        }
    }
    let mut text = "| scope | methods |\n|---|---|\n".to_owned();
    let all = Scope::ALL.iter().map(|scope| scope.as_str());
    for scope in all.chain([""]) {
        let Some(methods) = by_scope.get(scope) else {
            continue;
        };
        let scope = match scope {
            "" => "none".to_owned(),
            scope => format!("`{scope}`"),
        };
        let _ = writeln!(text, "| {scope} | {} |", methods.join(", "));
    }
    is_current("docs/guides/security.md", "scopes", &text);
}

fn said<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

fn write_method(text: &mut String, method: &Value) {
    let name = said(method, "name");
    let summary = said(method, "summary");
    let description = said(method, "description");
    let _ = write!(text, "\n## {name}\n\n{summary}.\n\n{description}\n");
    let params: Vec<&Value> = method["params"].as_array().into_iter().flatten().collect();
    if !params.is_empty() {
        text.push_str("\n| parameter | type | default | meaning |\n|---|---|---|---|\n");
    }
    for param in params {
        let schema = &param["schema"];
        let default = match (&param["required"], &schema["default"]) {
            (Value::Bool(true), _) => "required".to_owned(),
            (_, Value::Null) => String::new(),
            (_, default) => format!("`{default}`"),
        };
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            said(param, "name"),
            cell(&kind(schema)),
            cell(&default),
            cell(said(param, "description")),
        );
    }
    let members = members(&method["result"]["schema"]);
    if !members.is_empty() {
        let _ = write!(text, "\nThe result has {members}.\n");
    }
    let scopes: Vec<_> = scopes_of(method).map(|it| format!("`{it}`")).collect();
    let needed = match scopes.as_slice() {
        [] => "none".to_owned(),
        scopes => scopes.join(" or "),
    };
    let _ = write!(text, "\n[Scope](../guides/security.md#scopes): {needed}.\n");
    let codes = codes(method);
    if !codes.is_empty() {
        let _ = write!(text, "\n[Errors](errors.md#codes): {codes}.\n");
    }
    if let Some(example) = method["examples"].as_array().and_then(|all| all.first()) {
        let _ = write!(text, "\n```json\n{}\n```\n", request(name, example));
    }
}

/// A schema in a word or two.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(choices) = schema["enum"].as_array() {
        let choices = choices.iter().filter(|choice| !choice.is_null());
        return choices
            .map(|c| format!("`{c}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    for several in ["anyOf", "oneOf"] {
        if let Some(schemas) = schema[several].as_array() {
            let kinds = schemas.iter().map(kind).filter(|kind| kind != "null");
            let mut kinds: Vec<_> = kinds.collect();
            kinds.dedup();
            return kinds.join(" or ");
        }
    }
    match &schema["type"] {
        Value::String(one) => one.clone(),
        Value::Array(several) => {
            let kinds = several.iter().filter_map(Value::as_str);
            kinds
                .filter(|kind| *kind != "null")
                .collect::<Vec<_>>()
                .join(" or ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => "any".to_owned(),
    }
}

/// The members of a result.
fn members(schema: &Value) -> String {
    let quoted = |names: &Map<String, Value>| {
        names
            .keys()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    schema["properties"]
        .as_object()
        .map(quoted)
        .unwrap_or_default()
}

/// The errors of a method that not every method has.
fn codes(method: &Value) -> String {
    let rows: BTreeMap<String, i64> = ErrorKind::ALL
        .into_iter()
        .map(|kind| (format!("{kind:?}"), kind.row().0))
        .collect();
    let always = ["InvalidParams", "Internal", "Busy", "Unauthorized"];
    let names = method["errors"].as_array().into_iter().flatten();
    let names = names.filter_map(|error| said(error, "$ref").rsplit('/').next());
    let own = names.filter(|name| !always.contains(name));
    own.filter_map(|name| rows.get(name).map(i64::to_string))
        .collect::<Vec<_>>()
        .join(", ")
}

/// An example as a request.
fn request(method: &str, example: &Value) -> String {
    let given = example["params"].as_array().into_iter().flatten();
    let params: Map<String, Value> = given
        .map(|param| (said(param, "name").to_owned(), param["value"].clone()))
        .collect();
    let head = format!(r#"{{"jsonrpc": "2.0", "id": 1, "method": "{method}", "params": "#);
    let params = Value::Object(params);
    let line = format!("{head}{params}}}");
    if line.chars().count() <= LINE_CHARS_MAX {
        line
    } else {
        format!("{head}{params:#}}}")
    }
}

/// What an argument is called in a usage: `--limit N`, `<FILE>`.
fn named(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default();
    let values: Vec<_> = values.iter().map(|value| value.to_string()).collect();
    match arg.get_long() {
        None => format!("`<{}>`", values.join("> <")),
        Some(long) if arg.get_action().takes_values() => {
            format!("`--{long} {}`", values.join(" "))
        }
        Some(long) => format!("`--{long}`"),
    }
}

/// What an argument means, which values it takes, and its default.
fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let choices = arg.get_possible_values();
    let takes_values = arg.get_action().takes_values();
    if takes_values && !choices.is_empty() {
        let names = choices.iter().filter(|choice| !choice.is_hide_set());
        let names: Vec<_> = names
            .map(|choice| format!("`{}`", choice.get_name()))
            .collect();
        let _ = write!(text, ": {}", names.join(", "));
    }
    text
}

fn default(arg: &Arg) -> String {
    let values: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    match values.as_slice() {
        [] => String::new(),
        _ if arg.is_hide_default_value_set() => String::new(),
        values if arg.get_action().takes_values() => format!("`{}`", values.join(",")),
        _ => String::new(),
    }
}

/// The arguments that only this command has.
fn own(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_own = |arg: &&Arg| {
        let is_common = arg.is_global_set() || arg.is_hide_set();
        !is_common && !["help", "version"].contains(&arg.get_id().as_str())
    };
    command.get_arguments().filter(is_own)
}

#[test]
fn the_commands_are_those_of_the_program() {
    let mut program = Cli::command();
    program.build();
    let mut text = String::new();
    for command in program.get_subcommands() {
        write_command(&mut text, "taskledger", command);
    }
    text.push('\n');
    is_current("docs/reference/command-line.md", "commands", &text);
}

fn write_command(text: &mut String, parent: &str, command: &Command) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{parent} {}", command.get_name());
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut children = command.get_subcommands().peekable();
    let is_parent = children.peek().is_some();
    let _ = write!(text, "\n### {name}\n\n{about}.\n");
    if name == "taskledger serve" {
        text.push_str("\nIts options are the [settings](configuration.md).\n");
        return;
    }
    if own(command).next().is_some() {
        text.push_str("\n| argument | meaning | default |\n|---|---|---|\n");
    }
    for arg in own(command) {
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            cell(&named(arg)),
            cell(&meaning(arg)),
            cell(&default(arg)),
        );
    }
    if is_parent {
        children.for_each(|child| write_command(text, &name, child));
    }
}

#[test]
fn the_settings_are_those_of_the_server() {
    let mut program = Cli::command();
    program.build();
    let serve = program
        .find_subcommand("serve")
        .expect("`serve` is a command");
    let mut text = String::from("\n| flag | variable | default | meaning |\n|---|---|---|---|\n");
    for arg in own(serve) {
        let variable = arg
            .get_env()
            .map(|name| format!("`{}`", name.to_string_lossy()));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            cell(&named(arg)),
            variable.unwrap_or_default(),
            cell(&default(arg)),
            cell(&meaning(arg)),
        );
    }
    text.push('\n');
    is_current("docs/reference/configuration.md", "settings", &text);
}

#[test]
fn packages_name_settings_that_exist() {
    let mut program = Cli::command();
    program.build();
    let serve = program
        .find_subcommand("serve")
        .expect("`serve` is a command");
    let known: Vec<_> = serve
        .get_arguments()
        .filter_map(|arg| arg.get_env()?.to_str())
        .collect();
    for file in [
        "packaging/taskledger.env",
        "Dockerfile",
        "docker-compose.yml",
        "deploy/compose.yaml",
    ] {
        let text = std::fs::read_to_string(root().join(file)).expect("the file is there");
        let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let names: Vec<_> = text
            .split(|c| !is_name(c))
            // What a build is told, not a server.
            .filter(|name| name.starts_with("TASKLEDGER_") && *name != "TASKLEDGER_BUILD")
            .collect();
        assert!(!names.is_empty(), "{file} has settings");
        for name in names {
            assert!(known.contains(&name), "{file}: `{name}` is no setting");
        }
    }
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The product that an expression such as `16 * 1024` means.
fn product(expression: &str) -> Option<u64> {
    let factors = expression
        .split('*')
        .map(|factor| factor.trim().replace('_', "").parse::<u64>());
    factors
        .into_iter()
        .try_fold(1, |product, factor| Some(product * factor.ok()?))
}

/// Value and meaning of each constant in `domain/src/limits.rs`.
fn limits(source: &str) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    let mut said = String::new();
    for line in source.lines() {
        if let Some(comment) = line.strip_prefix("///") {
            said.push_str(comment);
        } else if let Some(constant) = line.strip_prefix("pub const ") {
            let (_, value) = constant.split_once(" = ").expect("a constant has a value");
            let value = product(value.trim_end_matches(';'))
                .unwrap_or_else(|| panic!("`{line}` is no product"));
            let meaning = said.split(" spec:").next().unwrap_or_default();
            found.push((value, meaning.trim().to_owned()));
            said.clear();
        } else {
            said.clear();
        }
    }
    found
}

#[test]
fn the_limits_are_those_of_the_rules() {
    let found = limits(include_str!("../../../domain/src/limits.rs"));
    assert!(found.len() > 40, "most limits are found: {}", found.len());
    let mut text = String::from("\n| limit | of what |\n|---|---|\n");
    for (value, meaning) in found {
        let _ = writeln!(text, "| {} | {} |", grouped(value), cell(&meaning));
    }
    text.push('\n');
    is_current("docs/reference/limits.md", "limits", &text);
    limits_of_schedules();
}

/// A part of the same page: two tests would write it at once.
fn limits_of_schedules() {
    let sources = [
        include_str!("../../../crates/schedules/src/changing.rs"),
        include_str!("../../../crates/schedules/src/timing.rs"),
        include_str!("../../../crates/schedules/src/recurrence.rs"),
        include_str!("../../../crates/schedules/src/definition.rs"),
        include_str!("../../../crates/schedules/src/turns.rs"),
    ];
    let found: Vec<_> = sources.iter().flat_map(|source| limits(source)).collect();
    assert_eq!(found.len(), 12, "all of them are found");
    let mut text = String::from("\n| limit | of what |\n|---|---|\n");
    for (value, meaning) in found {
        let _ = writeln!(text, "| {} | {} |", grouped(value), cell(&meaning));
    }
    text.push('\n');
    is_current("docs/reference/limits.md", "schedules", &text);
}

#[test]
fn the_book_lists_all_decisions() {
    let mut text = String::new();
    for page in pages(root(), &["docs/decisions"]) {
        let title = page.text.lines().next().unwrap_or_default();
        let path = page.name.trim_start_matches("docs/");
        if page.name != "docs/decisions/README.md" {
            let _ = writeln!(text, "  - [{}]({path})", title.trim_start_matches("# "));
        }
    }
    // The marker is indented, to be within the item of the list.
    text.push_str("  ");
    is_current("docs/SUMMARY.md", "decisions", &text);
}

#[test]
fn values_and_meanings_are_read_from_the_source() {
    let source =
        "//! x\n\n/// Bytes of a\n/// body. spec: y\npub const A: usize = 16 * 1_024;\nfn f() {}\n";
    assert_eq!(limits(source), [(16384, "Bytes of a body.".to_owned())]);
    assert_eq!(grouped(1_234_567), "1,234,567");
    assert_eq!(grouped(100), "100");
}
