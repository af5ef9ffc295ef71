//! Which file of a crate needs which.
//!
//! A file needs another when it names something that is defined there, in an import or in a path
//! (`crate::`, `super::`, `self::`, or the name of a module that it declares). A name that is imported
//! somewhere is followed to where it is defined. Three things are no need: that a module declares another,
//! that it passes names on (`pub use`) which it does not use itself, and anything in code for tests. Inherent
//! methods that stand in another file than their type are not seen, because no path names them.

use super::circles::Graph;
use super::source::{self, Import, Names, Source};
use super::workspace::Package;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Imports of imports that are followed.
const HOPS_MAX: usize = 16;

/// A library or a program.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) files: Vec<File>,
    /// Files by the names of the modules that they hold.
    modules: BTreeMap<Names, usize>,
}

/// A file of source.
#[derive(Debug)]
pub(crate) struct File {
    /// Below the root of the workspace.
    pub(crate) path: String,
    pub(crate) lines: usize,
    module: Names,
    source: Source,
}

impl File {
    /// The top-level module to which it belongs; the root file stands for itself.
    pub(crate) fn room(&self) -> &str {
        self.module.first().map_or("(root)", String::as_str)
    }
}

impl Unit {
    /// Reads the files of a target, from its root file on.
    pub(crate) fn read(root: &Path, package: &Package, target: &Path) -> Result<Self, String> {
        let name = if package.targets.len() > 1 && target.ends_with("main.rs") {
            format!("{} (program)", package.name)
        } else {
            package.name.clone()
        };
        let mut unit = Self {
            name,
            files: Vec::new(),
            modules: BTreeMap::new(),
        };
        unit.add(root, target, Names::new(), true)?;
        unit.files.sort_by(|a, b| a.path.cmp(&b.path));
        unit.modules.clear();
        for (at, file) in unit.files.iter().enumerate() {
            unit.modules.insert(file.module.clone(), at);
            for inline in &file.source.inline {
                let module = [file.module.as_slice(), inline].concat();
                unit.modules.insert(module, at);
            }
        }
        Ok(unit)
    }

    /// Adds a file and those of the modules that it declares. `owns`: its folder is that of its children.
    fn add(&mut self, root: &Path, path: &Path, module: Names, owns: bool) -> Result<(), String> {
        let text = read_to_string(root.join(path))
            .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
        let source = source::read(&text);
        let beside = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let folder = match path.file_stem() {
            Some(stem) if !owns => beside.join(stem),
            Some(_) | None => beside.clone(),
        };
        for declared in &source.declared {
            let mut below = folder.clone();
            below.extend(&declared.within);
            let (child, owns) = match &declared.path {
                Some(given) => (beside.join(given), false),
                None => find(root, &below, &declared.name),
            };
            let mut names = module.clone();
            names.extend(declared.within.iter().cloned());
            names.push(declared.name.clone());
            self.add(root, &child, names, owns)?;
        }
        self.files.push(File {
            path: path.to_string_lossy().replace('\\', "/"),
            lines: text.lines().count(),
            module,
            source,
        });
        Ok(())
    }

    /// What each file needs, by path.
    pub(crate) fn edges(&self) -> Graph<'_> {
        let mut graph = Graph::new();
        for (at, file) in self.files.iter().enumerate() {
            let needs = self.needs(file).into_iter().filter(|to| *to != at);
            let paths = needs.map(|to| self.files[to].path.as_str()).collect();
            graph.insert(file.path.as_str(), paths);
        }
        graph
    }

    /// What each room needs of others.
    pub(crate) fn rooms(&self) -> Graph<'_> {
        let mut graph = Graph::new();
        for file in &self.files {
            let room = file.room();
            let needs = self.needs(file);
            let rooms = needs.into_iter().map(|to| self.files[to].room());
            let on: &mut BTreeSet<&str> = graph.entry(room).or_default();
            on.extend(rooms.filter(|to| *to != room));
        }
        graph
    }

    fn needs(&self, file: &File) -> BTreeSet<usize> {
        let mut needs = BTreeSet::new();
        for import in &file.source.imports {
            let passed_on = import.is_public && !file.source.names.contains(&import.name);
            if !passed_on {
                let from = self.module(file, &import.within);
                needs.extend(self.resolve(&from, &import.path, HOPS_MAX));
            }
        }
        for used in &file.source.paths {
            let from = self.module(file, &used.within);
            // A path that begins with an imported name was counted with the import.
            let begins = &used.path[0];
            let is_imported = |i: &Import| i.within == used.within && i.name == *begins;
            let is_private = |i: &Import| !i.is_public && is_imported(i);
            if !file.source.imports.iter().any(is_private) || self.is_module_of(&from, begins) {
                needs.extend(self.resolve(&from, &used.path, HOPS_MAX));
            }
        }
        needs
    }

    fn module(&self, file: &File, within: &[String]) -> Names {
        [file.module.as_slice(), within].concat()
    }

    fn is_module_of(&self, module: &[String], name: &str) -> bool {
        let child = [module, &[name.to_owned()]].concat();
        self.modules.contains_key(&child)
    }

    /// The file in which the thing is defined that a path names, seen from a module. `None`: it belongs to
    /// another crate, or to nobody known.
    fn resolve(&self, from: &[String], path: &[String], hops: usize) -> Option<usize> {
        let hops = hops.checked_sub(1)?;
        let mut at = from.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while let Some((first, others)) = rest.split_first()
                    && first == "super"
                {
                    at.pop();
                    rest = others;
                }
            }
            name if self.is_module_of(&at, name) => {}
            name => {
                // An import of this module, or the name of another crate.
                let import = self.import(&at, name)?;
                let whole = [import.path.as_slice(), &rest[1..]].concat();
                return self.resolve(&at, &whole, hops);
            }
        }
        while let Some((first, others)) = rest.split_first()
            && self.is_module_of(&at, first)
        {
            at.push(first.clone());
            rest = others;
        }
        let here = *self.modules.get(&at)?;
        let Some(name) = rest.first() else {
            return Some(here);
        };
        if let Some(import) = self.import(&at, name)
            && import.path.last() != Some(&String::new())
        {
            let whole = [import.path.as_slice(), &rest[1..]].concat();
            if let Some(found) = self.resolve(&at, &whole, hops) {
                return Some(found);
            }
            return None;
        }
        if self.files[here].source.names.contains(name) {
            return Some(here);
        }
        let globs = self.files[here].source.imports.iter().filter(|import| {
            import.name == "*" && self.module(&self.files[here], &import.within) == at
        });
        let mut found = globs.filter_map(|import| {
            let whole = [import.path.as_slice(), rest].concat();
            self.resolve(&at, &whole, hops)
        });
        Some(found.next().unwrap_or(here))
    }

    fn import(&self, module: &[String], name: &str) -> Option<&Import> {
        let file = &self.files[*self.modules.get(module)?];
        let mut imports = file.source.imports.iter();
        imports.find(|i| i.name == name && self.module(file, &i.within) == module)
    }
}

/// The file of a module, and whether its folder is that of its children.
fn find(root: &Path, folder: &Path, name: &str) -> (PathBuf, bool) {
    let inner = folder.join(name).join("mod.rs");
    if root.join(&inner).is_file() {
        return (inner, true);
    }
    (folder.join(format!("{name}.rs")), false)
}
