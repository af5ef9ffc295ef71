//! Checks whether a value conforms to a type, and reports what is wrong with it.
//!
//! A type may be hostile: unions of recursive types would double the work with each level of a value. So within a
//! union the answer for a name and a value is kept, and all work is counted in steps; what cannot be told within
//! [`limits::OUTPUT_CHECK_STEPS_MAX`] steps and [`FRAMES_MAX`] levels of recursion is not accepted.

use super::fault::{Mismatch, push};
use super::kinds::{self, Kinds, equal, weight};
use super::pointer::{escape, step};
use super::tree::{Enum, Field, Node, Schema, Scope};
use super::words;
use crate::limits;
use crate::task::inputs::{OutOfSteps, TOO_COSTLY};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Calls within calls of a check: each takes a few hundred bytes of the stack of a thread, which has 2 MiB. A
/// value of [`limits::PAYLOAD_DEPTH_MAX`] levels needs one for each level, and one for each union on the way.
pub(super) const FRAMES_MAX: usize = 1_000;

/// The check would cost too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

impl From<OutOfSteps> for Exhausted {
    fn from(_: OutOfSteps) -> Self {
        Self
    }
}

/// Checks values against types of one scope, with one budget for all.
pub(super) struct Checker<'t> {
    scope: &'t Scope,
    steps_left: u64,
    frames: usize,
    /// Unions that are being tried.
    unions: usize,
    /// By the address of a value and the index of a name. Values do not move while they are borrowed, and no two
    /// checks with one checker are of values that did not live at the same time.
    known: HashMap<(usize, usize), bool>,
}

impl<'t> Checker<'t> {
    pub(super) fn within(scope: &'t Scope, steps: u64) -> Self {
        Self {
            scope,
            steps_left: steps,
            frames: 0,
            unions: 0,
            known: HashMap::new(),
        }
    }

    pub(super) const fn steps_left(&self) -> u64 {
        self.steps_left
    }

    fn spend(&mut self, steps: u64) -> Result<(), Exhausted> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(Exhausted)?;
        Ok(())
    }

    /// Runs `work` one level of recursion further down.
    fn deeper<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Exhausted>,
    ) -> Result<T, Exhausted> {
        if self.frames == FRAMES_MAX {
            return Err(Exhausted);
        }
        self.frames += 1;
        let result = work(self);
        self.frames -= 1;
        result
    }

    /// Whether a value is of a type.
    pub(super) fn accepts(&mut self, node: &'t Node, value: &Value) -> Result<bool, Exhausted> {
        self.deeper(|checker| checker.judge(node, value))
    }

    fn judge(&mut self, mut node: &'t Node, value: &Value) -> Result<bool, Exhausted> {
        loop {
            self.spend(1)?;
            match node {
                Node::Any => return Ok(true),
                Node::Primitive(primitive) => {
                    return Ok(Kinds::of(value).is_within(primitive.kinds()));
                }
                Node::Literal(literal) => {
                    self.spend(weight(literal))?;
                    return Ok(equal(literal, value));
                }
                Node::Enum(of) => return self.is_one_of(of, value),
                Node::Schema(schema) => return self.conforms(schema, value),
                Node::Optional(_) if value.is_null() => return Ok(true),
                Node::Optional(inner) => node = inner,
                Node::Named(name) => {
                    let entry = self.scope.names.get(name);
                    if !Kinds::of(value).is_within(entry.kinds) {
                        return Ok(false);
                    }
                    if self.unions > 0 {
                        return self.recalled(name.index, &entry.node, value);
                    }
                    node = &entry.node;
                }
                Node::Union(list) => return self.any_of(list, value),
                Node::Array(of) => {
                    return match value.as_array() {
                        Some(items) => self.all(of, items.iter()),
                        None => Ok(false),
                    };
                }
                Node::Map(of) => {
                    return match value.as_object() {
                        Some(members) => self.all(of, members.values()),
                        None => Ok(false),
                    };
                }
                Node::Shape(fields) => {
                    return match value.as_object() {
                        Some(members) => self.has_shape(fields, members),
                        None => Ok(false),
                    };
                }
            }
        }
    }

    fn is_one_of(&mut self, of: &Enum, value: &Value) -> Result<bool, Exhausted> {
        if let Some(text) = value.as_str() {
            return Ok(of.texts.contains(text));
        }
        for one in of.values.iter() {
            // The weight of an allowed value bounds the comparison, whatever the other one is.
            let same_kind = Kinds::of(one) == Kinds::of(value);
            self.spend(if same_kind { weight(one) } else { 1 })?;
            if same_kind && equal(one, value) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn conforms(&mut self, schema: &Schema, value: &Value) -> Result<bool, Exhausted> {
        match schema.compiled() {
            Ok(schema) => Ok(schema.check_within(value, &mut self.steps_left)?.is_ok()),
            Err(_) => Ok(false),
        }
    }

    /// As [`Checker::accepts`] for a named type, once for each value.
    fn recalled(&mut self, index: usize, node: &'t Node, value: &Value) -> Result<bool, Exhausted> {
        /// For a look into the table, and for an entry, which is kept until the end.
        const STEPS: u64 = 8;
        let key = (std::ptr::from_ref(value).addr(), index);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        self.spend(STEPS)?;
        let answer = self.accepts(node, value)?;
        self.known.insert(key, answer);
        Ok(answer)
    }

    fn any_of(&mut self, list: &'t [Arc<Node>], value: &Value) -> Result<bool, Exhausted> {
        self.unions += 1;
        for one in list {
            if self.accepts(one, value)? {
                self.unions -= 1;
                return Ok(true);
            }
        }
        self.unions -= 1;
        Ok(false)
    }

    fn all<'v>(
        &mut self,
        of: &'t Node,
        mut values: impl Iterator<Item = &'v Value>,
    ) -> Result<bool, Exhausted> {
        let of = self.scope.below(of);
        if matches!(of, Node::Any) {
            return Ok(true);
        }
        values.try_fold(true, |all, value| Ok(all && self.accepts(of, value)?))
    }

    fn has_shape(
        &mut self,
        fields: &'t [Field],
        members: &Map<String, Value>,
    ) -> Result<bool, Exhausted> {
        for field in fields {
            let accepted = match members.get(&field.name) {
                Some(value) => self.accepts(self.scope.below(&field.node), value)?,
                None => !field.required,
            };
            self.spend(1)?;
            if !accepted {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Lists what is wrong with values.
pub(super) struct Lister<'t> {
    /// Tells which values are accepted. The list has as many steps of its own, so that one long list does not keep
    /// other values from being checked.
    verdicts: Checker<'t>,
    checker: Checker<'t>,
    key: String,
    pointer: String,
    found: Vec<Mismatch>,
}

impl<'t> Lister<'t> {
    pub(super) fn within(scope: &'t Scope, steps: u64) -> Self {
        Self {
            verdicts: Checker::within(scope, steps),
            checker: Checker::within(scope, steps),
            key: String::new(),
            pointer: String::new(),
            found: Vec::new(),
        }
    }

    /// Steps that are left for verdicts or for lists, whichever are fewer.
    pub(super) const fn steps_left(&self) -> u64 {
        let (verdicts, lists) = (self.verdicts.steps_left, self.checker.steps_left);
        if verdicts < lists { verdicts } else { lists }
    }

    pub(super) fn into_found(self) -> Vec<Mismatch> {
        self.found
    }

    /// Checks the value of an output.
    pub(super) fn output(&mut self, key: &str, node: &'t Node, value: &Value) {
        key.clone_into(&mut self.key);
        self.pointer = format!("/{}", escape(key));
        self.value(node, value);
    }

    /// Checks a value, and lists its faults if it has some.
    pub(super) fn value(&mut self, node: &'t Node, value: &Value) {
        match self.verdicts.accepts(node, value) {
            Ok(true) => {}
            Ok(false) => {
                let length = self.pointer.len();
                if self.list(node, value) == Err(Exhausted) {
                    // What was under way has been left.
                    self.checker.frames = 0;
                    self.checker.unions = 0;
                    self.pointer.truncate(length);
                    self.push(node, || kinds::name(value).to_owned());
                }
            }
            Err(Exhausted) => {
                self.verdicts.frames = 0;
                self.verdicts.unions = 0;
                self.push(node, || words::TOO_COSTLY.to_owned());
            }
        }
    }

    fn push(&mut self, declared: &Node, actual: impl FnOnce() -> String) {
        let names = &self.checker.scope.names;
        self.push_expected(|| words::expected(names, declared), actual);
    }

    fn push_expected(
        &mut self,
        expected: impl FnOnce() -> String,
        actual: impl FnOnce() -> String,
    ) {
        let Self {
            key,
            pointer,
            found,
            ..
        } = self;
        push(found, || Mismatch {
            key: key.clone(),
            pointer: shortened(pointer).to_owned(),
            expected: expected(),
            actual: actual(),
        });
    }

    /// Lists what is wrong with a value that is not of its type.
    fn list(&mut self, declared: &'t Node, value: &Value) -> Result<(), Exhausted> {
        let mut node = declared;
        loop {
            self.checker.spend(1)?;
            match (node, value) {
                (Node::Named(name), _) => node = &self.checker.scope.names.get(name).node,
                (Node::Optional(inner), _) if !value.is_null() => node = inner,
                (Node::Union(list), Value::Array(_) | Value::Object(_)) => {
                    self.checker.spend(list.len() as u64)?;
                    let names = &self.checker.scope.names;
                    let kind = Kinds::of(value);
                    let mut alike = list.iter().filter(|it| names.kinds(it).overlaps(kind));
                    match (alike.next(), alike.next()) {
                        // The others are of another kind, so this one must have been meant.
                        (Some(one), None) => node = one,
                        _ => break,
                    }
                }
                (Node::Array(of), Value::Array(items)) => {
                    let steps = items.iter().enumerate().map(|(i, it)| (i.to_string(), it));
                    return self.members(of, steps);
                }
                (Node::Map(of), Value::Object(members)) => {
                    let steps = members.iter().map(|(name, it)| (escape(name), it));
                    return self.members(of, steps);
                }
                (Node::Shape(fields), Value::Object(members)) => {
                    return self.fields(fields, members);
                }
                (Node::Schema(schema), _) => return self.violations(declared, schema, value),
                (
                    Node::Any
                    | Node::Primitive(_)
                    | Node::Literal(_)
                    | Node::Enum(_)
                    | Node::Optional(_)
                    | Node::Union(_)
                    | Node::Array(_)
                    | Node::Map(_)
                    | Node::Shape(_),
                    _,
                ) => break,
            }
        }
        let scope = self.checker.scope;
        self.push(declared, || words::actual(scope, node, value));
        Ok(())
    }

    /// Lists what is wrong below the current place.
    fn below(
        &mut self,
        name: &str,
        list: impl FnOnce(&mut Self) -> Result<(), Exhausted>,
    ) -> Result<(), Exhausted> {
        if self.found.len() == limits::VIOLATIONS_MAX {
            return Ok(());
        }
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(name);
        if self.checker.frames == FRAMES_MAX {
            return Err(Exhausted);
        }
        self.checker.frames += 1;
        list(self)?;
        self.checker.frames -= 1;
        self.pointer.truncate(length);
        Ok(())
    }

    fn members<'v>(
        &mut self,
        of: &'t Node,
        values: impl Iterator<Item = (String, &'v Value)>,
    ) -> Result<(), Exhausted> {
        let of = self.checker.scope.below(of);
        for (name, value) in values {
            if !self.checker.accepts(of, value)? {
                self.below(&name, |lister| lister.list(of, value))?;
            }
        }
        Ok(())
    }

    fn fields(
        &mut self,
        fields: &'t [Field],
        members: &Map<String, Value>,
    ) -> Result<(), Exhausted> {
        for field in fields {
            let node = self.checker.scope.below(&field.node);
            match members.get(&field.name) {
                None if field.required => self.below(&escape(&field.name), |lister| {
                    lister.push(&field.node, || "nothing".to_owned());
                    Ok(())
                })?,
                Some(value) if !self.checker.accepts(node, value)? => {
                    self.below(&escape(&field.name), |lister| lister.list(node, value))?;
                }
                None | Some(_) => {}
            }
        }
        Ok(())
    }

    fn violations(
        &mut self,
        declared: &Node,
        schema: &Schema,
        value: &Value,
    ) -> Result<(), Exhausted> {
        let steps = &mut self.checker.steps_left;
        let checked = schema.compiled().as_ref();
        let checked = checked.map(|schema| schema.check_within(value, steps));
        let Ok(checked) = checked else {
            self.push(declared, || kinds::name(value).to_owned());
            return Ok(());
        };
        for violation in checked?.err().unwrap_or_default() {
            let names = violation.path.iter().map(|it| escape(&step(it)));
            let names: Vec<String> = names.collect();
            let place = names.iter().fold(String::new(), |it, name| it + "/" + name);
            let length = self.pointer.len();
            self.pointer.push_str(&place);
            if violation.reason == TOO_COSTLY {
                self.push(declared, || words::TOO_COSTLY.to_owned());
            } else {
                let actual = || words::violating(&violation, value.pointer(&place));
                self.push_expected(|| words::demanded(&violation), actual);
            }
            self.pointer.truncate(length);
        }
        Ok(())
    }
}

/// The pointer, or the part of it that an answer can hold.
fn shortened(pointer: &str) -> &str {
    if pointer.len() <= Mismatch::POINTER_BYTES_MAX {
        return pointer;
    }
    let beginning = limits::cut(pointer, Mismatch::POINTER_BYTES_MAX);
    &beginning[..beginning.rfind('/').unwrap_or(0)]
}
