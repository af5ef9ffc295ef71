//! The document tree, the same for YAML and JSON.

use serde_json::{Map, Value};
use std::rc::Rc;
use taskledger_domain::limits::cut;

use crate::limits;
use crate::path::Path;

/// A place in the text: line and column, both from 1. A document given as JSON value has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A value and where it begins. Aliases share what they stand for, so its place is that of the anchor.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) at: Option<At>,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    /// Null, a boolean, a number or a string.
    Scalar(Value),
    List(Vec<Rc<Node>>),
    /// In the order of the document; each key once.
    Map(Vec<Entry>),
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: Option<At>,
    pub(crate) value: Rc<Node>,
}

/// Something below an entry, or the nearest thing above it.
pub(crate) struct Place<'a> {
    pub(crate) path: Path,
    pub(crate) at: Option<At>,
    /// Where its key stands, of a member.
    pub(crate) key: Option<At>,
    pub(crate) node: &'a Node,
}

impl Entry {
    /// What the steps lead to, from this entry at `path`: names of members, and positions of items.
    pub(crate) fn place<'a, 's>(
        &'a self,
        path: &Path,
        steps: impl Iterator<Item = &'s str>,
    ) -> Place<'a> {
        let at = |key: Option<At>, node: &Node| if node.is_null() { key } else { node.at };
        let mut place = Place {
            path: path.clone(),
            at: at(self.at, &self.value),
            key: self.at,
            node: &self.value,
        };
        for step in steps {
            let item = step.parse::<usize>().ok();
            let item = item.and_then(|index| Some((index, place.node.items()?.get(index)?)));
            let member = place.node.entries().unwrap_or_default().iter();
            let member = member.clone().find(|entry| entry.key == step);
            match (item, member) {
                (Some((index, node)), _) => {
                    place.path = place.path.index(index);
                    (place.at, place.key, place.node) = (node.at, None, node);
                }
                (None, Some(entry)) => {
                    place.path = place.path.key(step);
                    place.at = at(entry.at, &entry.value);
                    (place.key, place.node) = (entry.at, &entry.value);
                }
                (None, None) => break,
            }
        }
        place
    }
}

impl Node {
    /// The value as JSON. Cost: O(size with aliases), which the limits bound; recursion: [`limits::LEVELS_MAX`].
    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => items.iter().map(|item| item.to_value()).collect(),
            Kind::Map(_) => Value::Object(self.to_map()),
        }
    }

    /// The members of a map; empty for any other value.
    pub(crate) fn to_map(&self) -> Map<String, Value> {
        let members = self.entries().unwrap_or_default().iter();
        members
            .map(|entry| (entry.key.clone(), entry.value.to_value()))
            .collect()
    }

    pub(crate) fn entries(&self) -> Option<&[Entry]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            Kind::Scalar(_) | Kind::List(_) => None,
        }
    }

    pub(crate) fn items(&self) -> Option<&[Rc<Self>]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            Kind::Scalar(_) | Kind::Map(_) => None,
        }
    }

    pub(crate) fn scalar(&self) -> Option<&Value> {
        match &self.kind {
            Kind::Scalar(value) => Some(value),
            Kind::List(_) | Kind::Map(_) => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.scalar()?.as_str()
    }

    pub(crate) fn is_null(&self) -> bool {
        self.scalar().is_some_and(Value::is_null)
    }

    /// What a message says was found.
    pub(crate) fn shown(&self) -> String {
        match &self.kind {
            Kind::Scalar(Value::Null) => "nothing".to_owned(),
            Kind::Scalar(value) => format!("`{}`", short(&value.to_string())),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a map".to_owned(),
        }
    }
}

/// The beginning of a text that a message repeats.
pub(crate) fn short(text: &str) -> String {
    let beginning = cut(text, limits::SHOWN_BYTES_MAX);
    if beginning.len() == text.len() {
        return text.to_owned();
    }
    format!("{beginning}…")
}
