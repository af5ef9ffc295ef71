//! Types as texts:
//!
//! ```text
//! type    = choice { "|" choice }
//! choice  = single { "?" }
//! single  = "array" "<" type ">" | "map" "<" type ">" | "(" type ")" | name | literal
//! name    = a letter or "_", then letters, digits, "_", "-" and "."
//! literal = a JSON string | a JSON number | "true" | "false"
//! ```
//!
//! White space may stand between any two of these. `T?` is `T` or null, and binds more tightly than `|`.

use super::tree::{Name, Node, Primitive};
use crate::json::{self, TOO_LARGE_EXPECTED, Unread};
use crate::limits;
use crate::suggestion::suggestion;
use serde_json::{Number, Value};
use std::sync::Arc;

/// Names that `types` cannot define.
const RESERVED: [&str; 4] = ["any", "map", "true", "false"];

/// What other languages call types, and their names here.
const ELSEWHERE: [(&str, &str); 22] = [
    ("int", "integer"),
    ("int32", "integer"),
    ("int64", "integer"),
    ("long", "integer"),
    ("bool", "boolean"),
    ("float", "number"),
    ("float64", "number"),
    ("double", "number"),
    ("decimal", "number"),
    ("num", "number"),
    ("text", "string"),
    ("str", "string"),
    ("char", "string"),
    ("list", "array<T>"),
    ("tuple", "array<T>"),
    ("set", "array<T>"),
    ("dict", "map<T>"),
    ("dictionary", "map<T>"),
    ("hash", "map<T>"),
    ("record", "map<T>"),
    ("struct", "object"),
    ("none", "null"),
];

/// Whether a name has a meaning in every declaration.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || Primitive::ALL.iter().any(|(known, _)| *known == name)
}

/// Whether a text can stand for a type in expressions.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(begins_name) && text.chars().all(continues_name)
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || "_-.".contains(c)
}

/// Why a text is no type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) reason: &'static str,
    pub(super) expected: String,
}

/// What a declaration gives to its expressions.
pub(super) struct Context<'a> {
    /// The names of `types`, sorted.
    pub(super) names: &'a [Arc<str>],
    /// Levels of types that the text stands in.
    pub(super) depth: usize,
    /// Types that the declaration may still hold.
    pub(super) nodes_left: &'a mut usize,
}

/// Compiles an expression. Cost: O(length x log(names)), and O(names) more for a fault.
///
/// # Errors
/// The first fault, with the character at which it was found, from 1.
pub(super) fn parse(text: &str, context: &mut Context<'_>) -> Result<Arc<Node>, Fault> {
    if text.chars().nth(limits::TYPE_CHARS_MAX).is_some() {
        return Err(Fault {
            reason: "Type too long",
            expected: format!("at most {} characters", limits::TYPE_CHARS_MAX),
        });
    }
    let depth = context.depth;
    let mut parser = Parser {
        text,
        at: 0,
        context,
    };
    let node = parser.union(depth)?;
    if parser.peek().is_some() {
        return Err(parser.unexpected("`|`, `?` or the end"));
    }
    Ok(node)
}

struct Parser<'p, 'a> {
    text: &'p str,
    /// Bytes that have been read.
    at: usize,
    context: &'p mut Context<'a>,
}

impl<'p> Parser<'p, '_> {
    fn rest(&self) -> &'p str {
        &self.text[self.at..]
    }

    /// The next character that is no white space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.at += expected.len_utf8();
        }
        found
    }

    fn fault(&self, at: usize, reason: &'static str, expected: &str) -> Fault {
        let place = self.text[..at].chars().count() + 1;
        Fault {
            reason,
            expected: format!("at character {place}: {expected}"),
        }
    }

    fn unexpected(&self, expected: &str) -> Fault {
        self.fault(self.at, "Invalid type", expected)
    }

    fn node(&mut self, node: Node) -> Result<Arc<Node>, Fault> {
        let left = self.context.nodes_left.checked_sub(1);
        *self.context.nodes_left = left.ok_or_else(too_many)?;
        Ok(Arc::new(node))
    }

    fn union(&mut self, depth: usize) -> Result<Arc<Node>, Fault> {
        if depth > limits::TYPE_DEPTH_MAX {
            return Err(too_deep());
        }
        let mut list = Vec::new();
        loop {
            let one = self.choice(depth + 1)?;
            match one.as_union() {
                Some(inner) => list.extend(inner.iter().cloned()),
                None => list.push(one),
            }
            if !self.take('|') {
                break;
            }
        }
        if list.len() > 1 {
            return self.node(Node::Union(list));
        }
        Ok(list.remove(0))
    }

    fn choice(&mut self, depth: usize) -> Result<Arc<Node>, Fault> {
        let mut node = self.single(depth)?;
        while self.take('?') {
            if !matches!(*node, Node::Optional(_)) {
                node = self.node(Node::Optional(node))?;
            }
        }
        Ok(node)
    }

    fn single(&mut self, depth: usize) -> Result<Arc<Node>, Fault> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let node = self.union(depth + 1)?;
                self.close(')')?;
                Ok(node)
            }
            Some('"') => self.string(),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number(),
            Some(c) if begins_name(c) => self.name(depth),
            Some(_) | None => Err(self.unexpected("a type")),
        }
    }

    fn close(&mut self, bracket: char) -> Result<(), Fault> {
        if self.take(bracket) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`|`, `?` or `{bracket}`")))
    }

    fn string(&mut self) -> Result<Arc<Node>, Fault> {
        let mut values = serde_json::Deserializer::from_str(self.rest()).into_iter::<String>();
        let Some(Ok(text)) = values.next() else {
            return Err(self.unexpected("a JSON string"));
        };
        self.at += values.byte_offset();
        self.node(Node::Literal(Value::String(text)))
    }

    fn number(&mut self) -> Result<Arc<Node>, Fault> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
        let text = &rest[..end.unwrap_or(rest.len())];
        let number = match json::read::<Number>(text.as_bytes()) {
            Ok(number) => number,
            Err(Unread::Large(_)) => return Err(self.unexpected(TOO_LARGE_EXPECTED)),
            Err(_) => return Err(self.unexpected("a JSON number")),
        };
        self.at += text.len();
        self.node(Node::Literal(Value::Number(number)))
    }

    fn name(&mut self, depth: usize) -> Result<Arc<Node>, Fault> {
        let rest = self.rest();
        let start = self.at;
        let end = rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
        let name = &rest[..end];
        self.at += end;
        if matches!(name, "array" | "map") && self.take('<') {
            let of = self.union(depth + 1)?;
            self.close('>')?;
            return self.node(match name {
                "map" => Node::Map(of),
                _ => Node::Array(of),
            });
        }
        let known = Primitive::ALL.iter().find(|(known, _)| *known == name);
        let node = match (name, known) {
            (_, Some((_, primitive))) => Node::Primitive(*primitive),
            ("any", _) => Node::Any,
            ("true", _) => Node::Literal(Value::Bool(true)),
            ("false", _) => Node::Literal(Value::Bool(false)),
            ("map", _) => return Err(self.unexpected("`<` and the type of the values")),
            _ => match self.context.names.binary_search_by(|it| (**it).cmp(name)) {
                Ok(index) => Node::Named(Name {
                    index,
                    text: Arc::clone(&self.context.names[index]),
                }),
                Err(_) => return Err(self.unknown(start, name)),
            },
        };
        self.node(node)
    }

    fn unknown(&self, start: usize, name: &str) -> Fault {
        let known = Primitive::ALL.iter().map(|(name, _)| *name);
        let known: Vec<&str> = known.chain(["any", "array<T>", "map<T>"]).collect();
        let mut expected = format!(
            "the name of a type: {}, or one of `types`",
            known.join(", ")
        );
        if let Some(meant) = self.meant(name) {
            expected += &format!("; did you mean `{meant}`?");
        }
        self.fault(start, "Unknown type", &expected)
    }

    /// The type that was probably meant: one of `types` in other letters, what other languages call so, or what is
    /// written nearly so.
    fn meant(&self, name: &str) -> Option<&str> {
        /// Bytes by which the lengths of two names that are alike may differ.
        const BYTES_MAX: usize = 2;
        let same = |other: &&str| other.eq_ignore_ascii_case(name);
        let own = || self.context.names.iter().map(|it| &**it);
        let primitives = || Primitive::ALL.iter().map(|(name, _)| *name);
        if let Some(one) = primitives().chain(["any"]).chain(own()).find(same) {
            return Some(one);
        }
        let elsewhere = ELSEWHERE.iter().find(|(word, _)| same(word));
        if let Some((_, meant)) = elsewhere {
            return Some(meant);
        }
        let all = primitives().chain(["any"]).chain(own());
        let alike = all.filter(|it| it.len().abs_diff(name.len()) <= BYTES_MAX);
        suggestion(name, alike)
    }
}

/// A declaration has more types than it may.
pub(super) fn too_many() -> Fault {
    Fault {
        reason: "Too many types",
        expected: format!("at most {} types within types", limits::TYPE_NODES_MAX),
    }
}

/// A type has more levels than it may.
pub(super) fn too_deep() -> Fault {
    Fault {
        reason: "Type nested too deep",
        expected: format!("at most {} levels", limits::TYPE_DEPTH_MAX),
    }
}
