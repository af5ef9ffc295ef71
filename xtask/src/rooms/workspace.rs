//! Crates of a workspace, from its manifests.

use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// The crates, in order of names.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
}

/// A crate.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Crates of the workspace that it needs, except in tests.
    pub(crate) on: BTreeSet<String>,
    /// `src/lib.rs`, `src/main.rs`, whichever it has, below the root.
    pub(crate) targets: Vec<PathBuf>,
}

impl Workspace {
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let manifest = text(&root.join("Cargo.toml"))?;
        let mut folders = vec![PathBuf::new()];
        for member in members(&manifest) {
            match member.strip_suffix("/*") {
                None => folders.push(PathBuf::from(member)),
                Some(parent) => folders.extend(below(root, parent)?),
            }
        }
        let mut packages = Vec::new();
        for folder in folders {
            let manifest = text(&root.join(&folder).join("Cargo.toml"))?;
            let Some(name) = name(&manifest) else {
                continue;
            };
            let targets = ["src/lib.rs", "src/main.rs"].map(|target| folder.join(target));
            packages.push(Package {
                name,
                on: dependencies(&manifest),
                targets: targets
                    .into_iter()
                    .filter(|target| root.join(target).is_file())
                    .collect(),
            });
        }
        let names: BTreeSet<String> = packages.iter().map(|p| p.name.clone()).collect();
        for package in &mut packages {
            package.on.retain(|name| names.contains(name));
        }
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { packages })
    }
}

fn text(path: &Path) -> Result<String, String> {
    read_to_string(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}

/// Folders with a manifest below `parent`.
fn below(root: &Path, parent: &str) -> Result<Vec<PathBuf>, String> {
    let folder = root.join(parent);
    let entries = read_dir(&folder)
        .map_err(|error| format!("cannot read `{}`: {error}", folder.display()))?;
    Ok(entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .map(|entry| Path::new(parent).join(entry.file_name()))
        .collect())
}

/// The texts of `members = [..]`.
fn members(manifest: &str) -> Vec<String> {
    let Some((_, after)) = manifest.split_once("members = [") else {
        return Vec::new();
    };
    let (inside, _) = after.split_once(']').unwrap_or((after, ""));
    inside
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Lines with the title of the table in which they stand.
fn lines(manifest: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut table = "";
    manifest.lines().filter_map(move |line| {
        if line.starts_with('[') {
            table = line.trim_matches(['[', ']']);
            return None;
        }
        Some((table, line))
    })
}

fn name(manifest: &str) -> Option<String> {
    let mut named = lines(manifest).filter(|(table, _)| *table == "package");
    let line = named.find(|(_, line)| line.starts_with("name"))?.1;
    line.split('"').nth(1).map(str::to_owned)
}

fn dependencies(manifest: &str) -> BTreeSet<String> {
    lines(manifest)
        .filter(|(table, _)| *table == "dependencies" || table.ends_with(".dependencies"))
        .filter(|(table, _)| *table != "workspace.dependencies")
        .filter_map(|(_, line)| Some(line.split_once(['.', '=', ' '])?.0.to_owned()))
        .collect()
}
