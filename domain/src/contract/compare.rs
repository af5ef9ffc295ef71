//! Compares the values of two types: whether all of one are values of the other, or none.
//!
//! Both questions are answered for recursive types by assuming the answer that is to be shown where a pair of types
//! meets itself again: values are finite, so a counterexample would show before. A pair that failed under such an
//! assumption fails without it, too, and is kept for good; a pair that held is kept for as long as what it was
//! shown under holds. What cannot be told within [`limits::TYPE_COMPARISON_STEPS_MAX`] is not told.

use super::check::{Checker, Exhausted};
use super::kinds::Kinds;
use super::tree::{ANY, Field, Node, Primitive, Scope};
use crate::limits;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// Calls within calls: each takes a few hundred bytes of stack.
const FRAMES_MAX: usize = 500;

static NULL: Node = Node::Primitive(Primitive::Null);
/// All values, by kind.
static EVERYTHING: [Node; 6] = [
    Node::Primitive(Primitive::String),
    Node::Primitive(Primitive::Number),
    Node::Primitive(Primitive::Boolean),
    Node::Primitive(Primitive::Null),
    Node::Primitive(Primitive::Object),
    Node::Primitive(Primitive::Array),
];
static BOOLEANS: [Value; 2] = [Value::Bool(true), Value::Bool(false)];
static NULLS: [Value; 1] = [Value::Null];

/// A type of one scope. An occurrence of a name is as good as any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Name(usize),
    Address(usize),
}

impl Key {
    fn of(node: &Node) -> Self {
        match node.as_named() {
            Some(name) => Self::Name(name.index),
            None => Self::Address(std::ptr::from_ref(node).addr()),
        }
    }
}

type Relation<'t> = fn(&mut Comparison<'t>, &'t Node, &'t Node) -> Result<bool, Exhausted>;

/// Compares types of a scope `left` with types of a scope `right`, in one way.
struct Comparison<'t> {
    left: &'t Scope,
    right: &'t Scope,
    /// A name means the same on both sides.
    same_scope: bool,
    /// At the beginning.
    steps: u64,
    steps_left: u64,
    frames: usize,
    held: HashSet<(Key, Key)>,
    /// What is in `held`, oldest first.
    trail: Vec<(Key, Key)>,
    failed: HashSet<(Key, Key)>,
}

/// Whether every value of `producer` is one of `consumer`; no when it cannot be told.
pub(super) fn is_within(
    producer: (&Scope, &Node),
    consumer: (&Scope, &Node),
    steps_left: &mut u64,
) -> bool {
    let mut comparison = Comparison::new(producer.0, consumer.0, *steps_left);
    let holds = (comparison.same_scope && producer.1 == consumer.1)
        || comparison.within(producer.1, consumer.1) == Ok(true);
    comparison.charge(steps_left);
    holds
}

/// Whether no value is of both types; no when it cannot be told.
pub(super) fn are_disjoint(
    one: (&Scope, &Node),
    other: (&Scope, &Node),
    steps_left: &mut u64,
) -> bool {
    let mut comparison = Comparison::new(one.0, other.0, *steps_left);
    let holds = comparison.disjoint(one.1, other.1) == Ok(true);
    comparison.charge(steps_left);
    holds
}

impl<'t> Comparison<'t> {
    fn new(left: &'t Scope, right: &'t Scope, steps_max: u64) -> Self {
        let same_names = Arc::ptr_eq(&left.names, &right.names);
        let steps = steps_max.min(limits::TYPE_COMPARISON_STEPS_MAX);
        Self {
            left,
            right,
            same_scope: left.shallow == right.shallow && (same_names || left.names == right.names),
            steps,
            steps_left: steps,
            frames: 0,
            held: HashSet::new(),
            trail: Vec::new(),
            failed: HashSet::new(),
        }
    }

    /// Takes what was spent, one step at least.
    fn charge(&self, steps_left: &mut u64) {
        let spent = self.steps - self.steps_left;
        *steps_left = steps_left.saturating_sub(spent.max(1));
    }

    fn deeper(
        &mut self,
        relation: Relation<'t>,
        left: &'t Node,
        right: &'t Node,
    ) -> Result<bool, Exhausted> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(Exhausted)?;
        if self.frames == FRAMES_MAX {
            return Err(Exhausted);
        }
        self.frames += 1;
        let answer = relation(self, left, right)?;
        self.frames -= 1;
        Ok(answer)
    }

    /// The answer for what `unfolded` names, for a pair of which one is a name.
    fn named(
        &mut self,
        relation: Relation<'t>,
        pair: (&'t Node, &'t Node),
        unfolded: (&'t Node, &'t Node),
    ) -> Result<bool, Exhausted> {
        let key = (Key::of(pair.0), Key::of(pair.1));
        if self.failed.contains(&key) {
            return Ok(false);
        }
        if !self.held.insert(key) {
            return Ok(true);
        }
        let before = self.trail.len();
        self.trail.push(key);
        let holds = self.deeper(relation, unfolded.0, unfolded.1)?;
        if !holds {
            for it in self.trail.drain(before..) {
                self.held.remove(&it);
            }
            self.failed.insert(key);
        }
        Ok(holds)
    }

    fn accepts(
        &mut self,
        scope: &'t Scope,
        node: &'t Node,
        value: &Value,
    ) -> Result<bool, Exhausted> {
        let mut checker = Checker::within(scope, self.steps_left);
        let accepted = checker.accepts(node, value)?;
        self.steps_left = checker.steps_left();
        Ok(accepted)
    }

    /// Whether every value of `left` is one of `right`.
    fn within(&mut self, left: &'t Node, right: &'t Node) -> Result<bool, Exhausted> {
        if matches!(right, Node::Any) {
            return Ok(true);
        }
        let all = |it: &mut Self, values: &[Value]| {
            let mut values = values.iter();
            values.try_fold(
                true,
                |all, one| Ok(all && it.accepts(it.right, right, one)?),
            )
        };
        match left {
            Node::Named(_) if self.same_scope && left == right => Ok(true),
            Node::Named(name) => {
                let unfolded = &*self.left.names.get(name).node;
                self.named(Self::within, (left, right), (unfolded, right))
            }
            Node::Union(list) => self.all_within(list.iter().map(|one| &**one), right),
            Node::Optional(inner) => {
                Ok(all(self, &NULLS)? && self.deeper(Self::within, inner, right)?)
            }
            Node::Any => self.all_within(EVERYTHING.iter(), right),
            Node::Primitive(Primitive::Null) => all(self, &NULLS),
            Node::Primitive(Primitive::Boolean) => all(self, &BOOLEANS),
            Node::Literal(value) => all(self, std::slice::from_ref(value)),
            Node::Enum(of) => all(self, &of.values),
            Node::Primitive(_)
            | Node::Array(_)
            | Node::Map(_)
            | Node::Shape(_)
            | Node::Schema(_) => self.one_within(left, right),
        }
    }

    fn all_within(
        &mut self,
        mut list: impl Iterator<Item = &'t Node>,
        right: &'t Node,
    ) -> Result<bool, Exhausted> {
        list.try_fold(true, |all, one| {
            Ok(all && self.deeper(Self::within, one, right)?)
        })
    }

    /// As [`Comparison::within`], for a type that is no union of others.
    fn one_within(&mut self, left: &'t Node, right: &'t Node) -> Result<bool, Exhausted> {
        match right {
            Node::Any => Ok(true),
            Node::Named(name) => {
                let unfolded = &*self.right.names.get(name).node;
                self.named(Self::one_within, (left, right), (left, unfolded))
            }
            Node::Union(list) => {
                let mut list = list.iter();
                list.try_fold(false, |any, one| {
                    Ok(any || self.deeper(Self::one_within, left, one)?)
                })
            }
            Node::Optional(inner) => self.deeper(Self::one_within, left, inner),
            Node::Primitive(primitive) => {
                Ok(self.left.names.kinds(left).is_within(primitive.kinds()))
            }
            Node::Literal(_) | Node::Enum(_) => Ok(false),
            Node::Array(of) => {
                let of = self.right.below(of);
                if matches!(left, Node::Primitive(Primitive::Array)) {
                    return self.deeper(Self::within, &ANY, of);
                }
                match left.as_array() {
                    Some(item) => self.deeper(Self::within, self.left.below(item), of),
                    None => Ok(false),
                }
            }
            Node::Map(of) => {
                let of = self.right.below(of);
                match self.others(left) {
                    Some(others) => self.deeper(Self::within, others, of),
                    None => Ok(false),
                }
            }
            Node::Shape(fields) => self.within_shape(left, fields),
            Node::Schema(schema) => Ok(matches!(left, Node::Schema(own) if own == schema)),
        }
    }

    /// The type of the members that an object type does not name; `None` for other types. Shapes are open.
    fn others(&self, left: &'t Node) -> Option<&'t Node> {
        match left {
            Node::Map(of) => Some(self.left.below(of)),
            Node::Shape(_) | Node::Primitive(Primitive::Object) => Some(&ANY),
            Node::Any
            | Node::Primitive(_)
            | Node::Literal(_)
            | Node::Enum(_)
            | Node::Array(_)
            | Node::Optional(_)
            | Node::Union(_)
            | Node::Named(_)
            | Node::Schema(_) => None,
        }
    }

    fn within_shape(&mut self, left: &'t Node, fields: &'t [Field]) -> Result<bool, Exhausted> {
        let Some(others) = self.others(left) else {
            return Ok(false);
        };
        for field in fields {
            let own = own_field(left, &field.name);
            let (node, required) = match own {
                Some(own) => (self.left.below(&own.node), own.required),
                None => (others, false),
            };
            let holds = (required || !field.required)
                && self.deeper(Self::within, node, self.right.below(&field.node))?;
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether no value is of both types.
    fn disjoint(&mut self, left: &'t Node, right: &'t Node) -> Result<bool, Exhausted> {
        let (left_kinds, right_kinds): (Kinds, Kinds) =
            (self.left.names.kinds(left), self.right.names.kinds(right));
        if !left_kinds.overlaps(right_kinds) {
            return Ok(true);
        }
        let scopes = (self.left, self.right);
        match (left, right) {
            (Node::Any, _) | (_, Node::Any) => Ok(false),
            (Node::Literal(value), _) => Ok(!self.accepts(scopes.1, right, value)?),
            (_, Node::Literal(value)) => Ok(!self.accepts(scopes.0, left, value)?),
            (Node::Enum(of), _) => self.none_of(scopes.1, right, &of.values),
            (_, Node::Enum(of)) => self.none_of(scopes.0, left, &of.values),
            (Node::Primitive(Primitive::Null), _) => self.none_of(scopes.1, right, &NULLS),
            (_, Node::Primitive(Primitive::Null)) => self.none_of(scopes.0, left, &NULLS),
            (Node::Primitive(Primitive::Boolean), _) => self.none_of(scopes.1, right, &BOOLEANS),
            (_, Node::Primitive(Primitive::Boolean)) => self.none_of(scopes.0, left, &BOOLEANS),
            (Node::Named(name), _) => {
                let unfolded = &*scopes.0.names.get(name).node;
                self.named(Self::disjoint, (left, right), (unfolded, right))
            }
            (_, Node::Named(name)) => {
                let unfolded = &*scopes.1.names.get(name).node;
                self.named(Self::disjoint, (left, right), (left, unfolded))
            }
            (Node::Optional(inner), _) => Ok(self.deeper(Self::disjoint, &NULL, right)?
                && self.deeper(Self::disjoint, inner, right)?),
            (_, Node::Optional(inner)) => Ok(self.deeper(Self::disjoint, left, &NULL)?
                && self.deeper(Self::disjoint, left, inner)?),
            (Node::Union(list), _) => self.all_disjoint(list, |one| (one, right)),
            (_, Node::Union(list)) => self.all_disjoint(list, |one| (left, one)),
            (Node::Shape(own), Node::Shape(fields)) => {
                let mut pairs = own.iter().filter_map(|field| {
                    let other = find(fields, &field.name)?;
                    (field.required || other.required).then_some((&*field.node, &*other.node))
                });
                self.any_disjoint(&mut pairs)
            }
            (Node::Shape(fields), Node::Map(of)) => {
                let required = fields.iter().filter(|field| field.required);
                self.any_disjoint(&mut required.map(|field| (&*field.node, &**of)))
            }
            (Node::Map(of), Node::Shape(fields)) => {
                let required = fields.iter().filter(|field| field.required);
                self.any_disjoint(&mut required.map(|field| (&**of, &*field.node)))
            }
            // Of one kind, and an empty list or object is of both, or it cannot be told.
            (
                Node::Primitive(_)
                | Node::Array(_)
                | Node::Map(_)
                | Node::Shape(_)
                | Node::Schema(_),
                Node::Primitive(_)
                | Node::Array(_)
                | Node::Map(_)
                | Node::Shape(_)
                | Node::Schema(_),
            ) => Ok(false),
        }
    }

    fn none_of(
        &mut self,
        scope: &'t Scope,
        node: &'t Node,
        values: &[Value],
    ) -> Result<bool, Exhausted> {
        let mut values = values.iter();
        values.try_fold(true, |none, one| {
            Ok(none && !self.accepts(scope, node, one)?)
        })
    }

    fn all_disjoint(
        &mut self,
        list: &'t [Arc<Node>],
        pair: impl Fn(&'t Node) -> (&'t Node, &'t Node),
    ) -> Result<bool, Exhausted> {
        // Their kinds were put together.
        let steps = self.steps_left.checked_sub(list.len() as u64);
        self.steps_left = steps.ok_or(Exhausted)?;
        list.iter().try_fold(true, |all, one| {
            let (left, right) = pair(one);
            Ok(all && self.deeper(Self::disjoint, left, right)?)
        })
    }

    /// Whether the types of some member exclude each other.
    fn any_disjoint(
        &mut self,
        pairs: &mut dyn Iterator<Item = (&'t Node, &'t Node)>,
    ) -> Result<bool, Exhausted> {
        for (left, right) in pairs {
            let (left, right) = (self.left.below(left), self.right.below(right));
            if self.deeper(Self::disjoint, left, right)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The field of this name, of a shape.
fn own_field<'t>(node: &'t Node, name: &str) -> Option<&'t Field> {
    find(node.as_shape()?, name)
}

fn find<'t>(fields: &'t [Field], name: &str) -> Option<&'t Field> {
    let found = fields.binary_search_by(|field| field.name.as_str().cmp(name));
    found.ok().map(|at| &fields[at])
}
