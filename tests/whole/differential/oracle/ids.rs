//! Section "Ids", and of "Trees and flows" what makes the tasks of a call one tree.

use super::{Oracle, Refusal, Symbol, When, invalid, refuse, wires};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What a text is where an id may stand.
pub(crate) enum Reference {
    /// A UUID v4.
    Stored(Symbol),
    /// Written like a UUID, but of another version or variant.
    Broken,
    /// Anything else: an alias or a name.
    Local(String),
}

/// `@x`, or `@^x` for the same id in capitals.
pub(crate) fn symbol(text: &str) -> Option<Symbol> {
    let symbol = text.strip_prefix('@')?;
    Some(symbol.strip_prefix('^').unwrap_or(symbol).to_owned())
}

pub(crate) fn reference(text: &str) -> Reference {
    if let Some(symbol) = symbol(text) {
        return Reference::Stored(symbol);
    }
    let groups: Vec<_> = text.split('-').map(str::len).collect();
    let hexadecimal = text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    if groups == [8, 4, 4, 4, 12] && hexadecimal {
        Reference::Broken
    } else {
        Reference::Local(text.to_owned())
    }
}

/// A task of a call, as written.
pub(crate) struct Written<'a> {
    pub(crate) map: &'a Map<String, Value>,
    pub(crate) path: String,
    /// The task that it is nested in.
    pub(crate) around: Option<usize>,
}

/// The tasks of a call with their ids, references resolved, parents first.
pub(crate) struct Resolved {
    pub(crate) map: Map<String, Value>,
    pub(crate) symbol: Symbol,
    pub(crate) parent: Option<Symbol>,
    pub(crate) dependencies: Vec<(Symbol, When)>,
}

pub(crate) fn join(path: &str, rest: &str) -> String {
    if path.is_empty() {
        rest.to_owned()
    } else {
        format!("{path}.{rest}")
    }
}

/// All tasks of the three spellings in the order written. The shape was checked before.
pub(crate) fn written(params: &Map<String, Value>) -> Vec<Written<'_>> {
    let tops: Vec<(&Map<String, Value>, String)> = match params.get("tasks") {
        Some(list) => objects(list, "tasks"),
        None => vec![(params, String::new())],
    };
    let mut found = Vec::new();
    let mut open: Vec<_> = tops.into_iter().rev().map(|t| (t, None)).collect();
    while let Some(((node, path), around)) = open.pop() {
        let index = found.len();
        let (map, at) = match node.get("task").and_then(Value::as_object) {
            Some(inner) => (inner, join(&path, "task")),
            None => (node, path.clone()),
        };
        found.push(Written {
            map,
            path: at,
            around,
        });
        if let Some(children) = node.get("children") {
            let below = objects(children, &join(&path, "children"));
            open.extend(below.into_iter().rev().map(|t| (t, Some(index))));
        }
    }
    found
}

fn objects<'a>(list: &'a Value, path: &str) -> Vec<(&'a Map<String, Value>, String)> {
    let items = list.as_array().into_iter().flatten().enumerate();
    items
        .filter_map(|(i, v)| Some((v.as_object()?, format!("{path}.{i}"))))
        .collect()
}

/// Texts of a call that mean one of its tasks.
struct Names {
    ids: BTreeMap<String, usize>,
    names: BTreeMap<String, Vec<usize>>,
}

impl Names {
    /// The names, and the paths of ids that several tasks have.
    fn of(tasks: &[Written<'_>]) -> (Self, BTreeSet<String>) {
        let (mut ids, mut names) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        let mut faults = BTreeSet::new();
        for (i, task) in tasks.iter().enumerate() {
            names.entry(text(task.map, "name")).or_default().push(i);
            if task.map.contains_key("id") {
                let given = text(task.map, "id");
                let id = symbol(&given).map_or(given, |s| format!("@{s}"));
                if ids.insert(id, i).is_some() {
                    faults.insert(join(&task.path, "id"));
                }
            }
        }
        (Self { ids, names }, faults)
    }

    /// A task of the call, or a stored one; `None` when the text means nothing or too much.
    fn find(&self, text: &str) -> Option<Result<usize, Symbol>> {
        match reference(text) {
            Reference::Broken => None,
            Reference::Stored(symbol) => {
                let local = self.ids.get(&format!("@{symbol}"));
                Some(local.map_or(Err(symbol), |i| Ok(*i)))
            }
            Reference::Local(text) => match (self.ids.get(&text), self.names.get(&text)) {
                (Some(i), _) => Some(Ok(*i)),
                (None, Some(named)) if named.len() == 1 => Some(Ok(named[0])),
                (None, _) => None,
            },
        }
    }
}

impl Names {
    /// Faults of wired inputs, of which nothing is said when dependencies are wrong.
    fn unwired(
        &self,
        tasks: &[Written<'_>],
        symbols: &[Symbol],
        dependencies: &[Vec<(Symbol, When)>],
        known: &BTreeSet<String>,
    ) -> BTreeSet<String> {
        if known.iter().any(|path| path.contains("dependencies.")) {
            return BTreeSet::new();
        }
        let find = |name: &str| {
            let found = self.find(name)?;
            Some(found.map_or_else(|s| s, |i| symbols[i].clone()))
        };
        let faults = tasks.iter().zip(dependencies).map(|(task, dependencies)| {
            let member = |name: &str| task.map.get(name).cloned().unwrap_or(Value::Null);
            let (inputs, schemas) = (member("inputs"), member("schemas"));
            wires::faults(&inputs, &schemas, dependencies, &find, &task.path)
        });
        faults.flatten().collect()
    }
}

pub(crate) fn text(map: &Map<String, Value>, field: &str) -> String {
    map.get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

impl Oracle {
    /// Gives the tasks of a call their ids and puts them into a tree. Also the result's `task_ids`.
    pub(super) fn resolve(
        &self,
        mark: &str,
        tasks: &[Written<'_>],
    ) -> Result<(Vec<Resolved>, Map<String, Value>), Refusal> {
        let (names, mut faults) = Names::of(tasks);
        let symbols: Vec<Symbol> = (0..tasks.len()).map(|i| minted(mark, tasks, i)).collect();
        let mut misplaced = false;
        let mut parents = Vec::new();
        let mut dependencies = Vec::new();
        for task in tasks {
            let given = task.map.get("parent_id").and_then(Value::as_str);
            let found = given.map(|text| names.find(text));
            if matches!(found, Some(None)) {
                faults.insert(join(&task.path, "parent_id"));
            }
            let found = found.flatten();
            misplaced |= task.around.is_some() && found.is_some() && found != task.around.map(Ok);
            parents.push(found.or(task.around.map(Ok)));
            let listed = task.map.get("dependencies").and_then(Value::as_array);
            let mut list: Vec<(Symbol, When)> = Vec::new();
            for (i, dependency) in listed.into_iter().flatten().enumerate() {
                let id = dependency["id"].as_str().unwrap_or_default();
                let found = names
                    .find(id)
                    .map(|f| f.map_or_else(|s| s, |i| symbols[i].clone()));
                match found {
                    Some(symbol) if list.iter().all(|(s, _)| *s != symbol) => {
                        list.push((symbol, When::of(dependency)));
                    }
                    _ => _ = faults.insert(join(&task.path, &format!("dependencies.{i}.id"))),
                }
            }
            dependencies.push(list);
        }
        faults.extend(names.unwired(tasks, &symbols, &dependencies, &faults));
        if !faults.is_empty() {
            return invalid(faults);
        }
        let roots = parents.iter().filter(|p| p.is_none()).count();
        let joins = parents.iter().any(|p| matches!(p, Some(Err(_))));
        let order = in_tree_order(&parents);
        if misplaced || roots > 1 || (joins && roots > 0) || order.len() < tasks.len() {
            return refuse(-32012);
        }
        let find = |name: &str| {
            let found = names.find(name)?;
            Some(found.map_or_else(|s| s, |i| symbols[i].clone()))
        };
        let resolved = order.into_iter().map(|i| Resolved {
            map: stored(tasks[i].map, &find),
            symbol: symbols[i].clone(),
            parent: parents[i]
                .clone()
                .map(|p| p.map_or_else(|s| s, |i| symbols[i].clone())),
            dependencies: dependencies[i].clone(),
        });
        let mut aliases = Map::new();
        for (i, task) in tasks.iter().enumerate() {
            let name = text(task.map, "name");
            let alone = names.names[&name].len() == 1 && !names.ids.contains_key(&name);
            let id = text(task.map, "id");
            let alias = if id.is_empty() {
                Some(name).filter(|_| alone)
            } else {
                Some(id.replace("@^", "@"))
            };
            if let Some(alias) = alias {
                aliases.insert(alias, format!("@{}", symbols[i]).into());
            }
        }
        Ok((resolved.collect(), aliases))
    }
}

/// A task as it is stored: references name tasks by their ids.
fn stored(map: &Map<String, Value>, find: &dyn Fn(&str) -> Option<Symbol>) -> Map<String, Value> {
    let mut stored = map.clone();
    if let Some(schemas) = stored.get_mut("schemas") {
        *schemas = wires::renamed(schemas, find);
    }
    stored
}

/// The symbol of a new task: the id that was chosen, else mark and alias, else mark and place.
fn minted(mark: &str, tasks: &[Written<'_>], i: usize) -> Symbol {
    let id = text(tasks[i].map, "id");
    match (symbol(&id), id.is_empty(), tasks.len()) {
        (Some(chosen), _, _) => chosen,
        (None, true, 1) => mark.to_owned(),
        (None, true, _) => format!("{mark}.{i}"),
        (None, false, _) => format!("{mark}{id}"),
    }
}

/// Indices, parents before children, siblings as written; those on a cycle are left out.
fn in_tree_order(parents: &[Option<Result<usize, Symbol>>]) -> Vec<usize> {
    let below = |parent: Option<usize>| {
        let local = |p: &Option<Result<usize, Symbol>>| match p {
            Some(Ok(i)) => Some(*i),
            Some(Err(_)) | None => None,
        };
        (0..parents.len())
            .filter(move |i| local(&parents[*i]) == parent)
            .rev()
    };
    let mut open: Vec<usize> = below(None).collect();
    let mut order = Vec::new();
    while let Some(i) = open.pop() {
        order.push(i);
        open.extend(below(Some(i)));
    }
    order
}
