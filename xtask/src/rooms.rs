//! What depends on what: crates, rooms (top-level modules of a crate), and circles of files.
//!
//! The source is read as text, without a compiler, so any checkout can be measured. What counts as a
//! dependency of one file on another is said in [`graph`]. Code for tests does not count.

mod circles;
mod graph;
mod source;
mod tokens;
mod workspace;

use graph::Unit;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use workspace::Workspace;

/// The form in which the report is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Tables for people.
    Tables,
    /// Graphviz.
    Dot,
    /// Only totals.
    Summary,
}

/// The report about the workspace in a folder.
pub(crate) fn report(root: &Path, form: Form) -> Result<String, String> {
    let workspace = Workspace::read(root)?;
    let mut units = Vec::new();
    for package in &workspace.packages {
        for target in &package.targets {
            units.push(Unit::read(root, package, target)?);
        }
    }
    let mut out = String::new();
    match form {
        Form::Tables => {
            crates(&mut out, &workspace);
            units.iter().for_each(|unit| rooms(&mut out, unit));
            circles_of_files(&mut out, &units);
            summary(&mut out, &workspace, &units);
        }
        Form::Dot => dot(&mut out, &workspace, &units),
        Form::Summary => summary(&mut out, &workspace, &units),
    }
    Ok(out)
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a text takes what is written");
    out.push('\n');
}

fn crates(out: &mut String, workspace: &Workspace) {
    line(out, format_args!("Crates"));
    let width = workspace.packages.iter().map(|p| p.name.len()).max();
    let width = width.unwrap_or(0);
    for package in &workspace.packages {
        let on: Vec<&str> = package.on.iter().map(String::as_str).collect();
        line(
            out,
            format_args!("  {:width$} -> {}", package.name, list(&on)),
        );
    }
    out.push('\n');
}

fn list(names: &[&str]) -> String {
    if names.is_empty() {
        "nothing of ours".to_owned()
    } else {
        names.join(", ")
    }
}

fn rooms(out: &mut String, unit: &Unit) {
    let graph = unit.rooms();
    if graph.len() < 2 {
        return;
    }
    line(out, format_args!("Rooms of {}", unit.name));
    let width = graph.keys().map(|room| room.len()).max().unwrap_or(0);
    let mut files: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for file in &unit.files {
        let sum = files.entry(file.room()).or_default();
        sum.0 += 1;
        sum.1 += file.lines;
    }
    for (room, on) in &graph {
        let (count, lines) = files.get(room).copied().unwrap_or_default();
        let on: Vec<&str> = on.iter().copied().collect();
        let on = on.join(", ");
        line(
            out,
            format_args!("  {room:width$} {count:>4} files {lines:>6} lines -> {on}"),
        );
    }
    for circle in circles::of(&graph) {
        line(
            out,
            format_args!("  circle of rooms: {}", circle.join(", ")),
        );
    }
    out.push('\n');
}

fn circles_of_files(out: &mut String, units: &[Unit]) {
    line(out, format_args!("Circles of files"));
    for unit in units {
        for circle in circles::of(&unit.edges()) {
            let size = circle.len();
            line(out, format_args!("  {}: {size} files", unit.name));
            for path in circle {
                line(out, format_args!("    {path}"));
            }
        }
    }
    out.push('\n');
}

fn summary(out: &mut String, workspace: &Workspace, units: &[Unit]) {
    let edges: usize = workspace.packages.iter().map(|p| p.on.len()).sum();
    let files: usize = units.iter().map(|unit| unit.files.len()).sum();
    let (mut count, mut within, mut of_rooms) = (0, 0, 0);
    let mut sizes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for unit in units {
        let found: Vec<usize> = circles::of(&unit.edges()).iter().map(Vec::len).collect();
        count += found.len();
        within += found.iter().sum::<usize>();
        of_rooms += circles::of(&unit.rooms()).len();
        sizes.insert(&unit.name, found);
    }
    let packages = workspace.packages.len();
    line(
        out,
        format_args!(
            "{packages} crates with {edges} edges, {files} files; {count} circles of files with {within} files, \
             {of_rooms} circles of rooms"
        ),
    );
    for (name, sizes) in sizes.iter().filter(|(_, sizes)| !sizes.is_empty()) {
        let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
        line(
            out,
            format_args!("  {name}: circles of {} files", sizes.join(", ")),
        );
    }
}

fn dot(out: &mut String, workspace: &Workspace, units: &[Unit]) {
    line(out, format_args!("digraph rooms {{\n  rankdir = LR;"));
    for package in &workspace.packages {
        let from = &package.name;
        line(out, format_args!("  \"{from}\" [shape = box];"));
        for to in &package.on {
            line(out, format_args!("  \"{from}\" -> \"{to}\";"));
        }
    }
    for unit in units {
        let graph = unit.rooms();
        if graph.len() < 2 {
            continue;
        }
        let circular: BTreeSet<&str> = circles::of(&graph).into_iter().flatten().collect();
        let name = &unit.name;
        line(
            out,
            format_args!("  subgraph \"cluster {name}\" {{\n    label = \"{name}\";"),
        );
        for (room, on) in &graph {
            let colour = if circular.contains(room) {
                "red"
            } else {
                "black"
            };
            line(
                out,
                format_args!("    \"{name}::{room}\" [label = \"{room}\", color = {colour}];"),
            );
            for to in on {
                line(
                    out,
                    format_args!("    \"{name}::{room}\" -> \"{name}::{to}\";"),
                );
            }
        }
        line(out, format_args!("  }}"));
    }
    line(out, format_args!("}}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Circles of files in a crate, files in all of them, files in the largest; circles of rooms, rooms in the largest.
    type Circles = [usize; 5];

    /// What each crate has that has any. These numbers may only fall: write down smaller ones when they are reached.
    const HELD: &[(&str, Circles)] = &[
        ("taskledger", [23, 63, 4, 0, 0]),
        ("taskledger-a2a", [1, 2, 2, 0, 0]),
        ("taskledger-a2a-client", [1, 3, 3, 1, 3]),
        ("taskledger-auth", [3, 9, 4, 1, 4]),
        ("taskledger-bench", [2, 5, 3, 1, 2]),
        ("taskledger-broker", [1, 5, 5, 1, 5]),
        ("taskledger-cli", [8, 17, 3, 2, 5]),
        ("taskledger-clock", [1, 2, 2, 1, 2]),
        ("taskledger-conformance", [4, 10, 3, 1, 3]),
        ("taskledger-documents", [1, 2, 2, 1, 2]),
        ("taskledger-domain", [5, 19, 6, 1, 6]),
        ("taskledger-log", [3, 13, 6, 2, 5]),
        ("taskledger-projections", [1, 4, 4, 0, 0]),
        ("taskledger-schedules", [1, 6, 6, 1, 3]),
        ("taskledger-subscription", [2, 7, 5, 3, 2]),
        ("taskledger-webhooks", [5, 15, 5, 2, 3]),
        ("taskledger-workers", [1, 4, 4, 0, 0]),
        ("taskledger-workflows", [2, 4, 2, 0, 0]),
    ];

    fn circles_in(unit: &Unit) -> Circles {
        let (edges, rooms) = (unit.edges(), unit.rooms());
        let (files, rooms) = (circles::of(&edges), circles::of(&rooms));
        let largest = |circles: &[Vec<&str>]| circles.first().map_or(0, Vec::len);
        [
            files.len(),
            files.iter().map(Vec::len).sum(),
            largest(&files),
            rooms.len(),
            largest(&rooms),
        ]
    }

    /// Crates whose circles are others than those that are held, and what is held of crates that are not there.
    fn changed(found: &[(&str, Circles)], held: &[(&str, Circles)]) -> Vec<String> {
        let of = |list: &[(&str, Circles)], name: &str| {
            let row = list.iter().find(|(of, _)| *of == name);
            row.map_or([0; 5], |(_, numbers)| *numbers)
        };
        let names: BTreeSet<&str> = found.iter().chain(held).map(|(name, _)| *name).collect();
        let rows = names
            .into_iter()
            .map(|name| (name, of(found, name), of(held, name)));
        rows.filter(|(_, found, held)| found != held)
            .map(|(name, found, held)| format!("{name}: {found:?}, {held:?} are held"))
            .collect()
    }

    #[test]
    fn circles_do_not_grow() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let workspace = Workspace::read(&root).expect("the workspace can be read");
        let mut units = Vec::new();
        for package in &workspace.packages {
            for target in &package.targets {
                units.push(Unit::read(&root, package, target).expect("source can be read"));
            }
        }
        let found: Vec<_> = units
            .iter()
            .map(|unit| (unit.name.as_str(), circles_in(unit)))
            .collect();
        let faults = changed(&found, HELD);
        let mut listed = String::new();
        circles_of_files(&mut listed, &units);
        assert!(
            faults.is_empty(),
            "{}\n`xtask rooms` shows the circles of rooms; smaller numbers are to be written down.\n{listed}",
            faults.join("\n")
        );
    }

    #[test]
    fn a_circle_more_or_less_is_noticed() {
        let held: [(&str, Circles); 2] = [("a", [2, 6, 4, 1, 2]), ("b", [1, 2, 2, 0, 0])];
        assert_eq!(changed(&held, &held), [""; 0]);
        let with_c = [held[0], held[1], ("c", [0; 5])];
        assert_eq!(changed(&with_c, &held), [""; 0]);
        for numbers in [
            [3, 8, 4, 1, 2],
            [2, 7, 4, 1, 2],
            [2, 6, 5, 1, 2],
            [2, 6, 4, 2, 2],
            [2, 6, 4, 1, 3],
            [1, 4, 4, 1, 2],
        ] {
            let found = changed(&[("a", numbers), held[1]], &held);
            let expected = format!("a: {numbers:?}, [2, 6, 4, 1, 2] are held");
            assert_eq!(found, [expected]);
        }
        let gone = changed(&held[..1], &held);
        assert_eq!(gone, ["b: [0, 0, 0, 0, 0], [1, 2, 2, 0, 0] are held"]);
    }
}
