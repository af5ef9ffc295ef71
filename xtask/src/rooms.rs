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

    /// Most files in one circle, by crate. These numbers may only fall: write down a smaller one when it is reached.
    /// Crates that are not named have no circles of files.
    const FILES_IN_A_CIRCLE_MAX: &[(&str, usize)] = &[
        ("taskledger", 4),
        ("taskledger-a2a", 2),
        ("taskledger-a2a-client", 3),
        ("taskledger-auth", 4),
        ("taskledger-bench", 3),
        ("taskledger-broker", 5),
        ("taskledger-cli", 2),
        ("taskledger-clock", 2),
        ("taskledger-conformance", 3),
        ("taskledger-documents", 2),
        ("taskledger-domain", 5),
        ("taskledger-log", 5),
        ("taskledger-projections", 4),
        ("taskledger-schedules", 2),
        ("taskledger-subscription", 5),
        ("taskledger-webhooks", 5),
        ("taskledger-workers", 4),
        ("taskledger-workflows", 2),
    ];
    /// Circles of rooms in all crates together. This number may only fall, too.
    const CIRCLES_OF_ROOMS_MAX: usize = 16;

    /// Circles of files that are larger than a bound.
    fn too_large(name: &str, circles: &[Vec<&str>]) -> Vec<String> {
        let bound = FILES_IN_A_CIRCLE_MAX.iter().find(|(of, _)| *of == name);
        let bound = bound.map_or(1, |(_, files)| *files);
        let larger = circles.iter().filter(|circle| circle.len() > bound);
        larger
            .map(|circle| {
                let (files, paths) = (circle.len(), circle.join(", "));
                format!("{name}: {files} files need each other, {bound} may: {paths}")
            })
            .collect()
    }

    #[test]
    fn circles_do_not_grow() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let workspace = Workspace::read(&root).expect("the workspace can be read");
        let (mut found, mut of_rooms) = (Vec::new(), Vec::new());
        for package in &workspace.packages {
            for target in &package.targets {
                let unit = Unit::read(&root, package, target).expect("source can be read");
                found.extend(too_large(&unit.name, &circles::of(&unit.edges())));
                let rooms = unit.rooms();
                let rooms = circles::of(&rooms).into_iter();
                of_rooms
                    .extend(rooms.map(|circle| format!("{}: {}", unit.name, circle.join(", "))));
            }
        }
        assert!(found.is_empty(), "{}", found.join("\n"));
        let (count, listed) = (of_rooms.len(), of_rooms.join("\n"));
        assert!(
            count <= CIRCLES_OF_ROOMS_MAX,
            "{count} circles of rooms:\n{listed}"
        );
    }

    #[test]
    fn a_circle_that_is_larger_than_its_bound_is_named() {
        let (name, bound) = FILES_IN_A_CIRCLE_MAX[0];
        let circle = |files: usize| vec!["a.rs"; files];
        assert!(too_large(name, &[circle(bound)]).is_empty());
        assert_eq!(too_large(name, &[circle(bound + 1)]).len(), 1);
        assert_eq!(too_large("another crate", &[circle(2)]).len(), 1);
    }
}
