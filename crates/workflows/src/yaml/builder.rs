//! Builds the tree from the events of the parser.

use saphyr_parser::{Event, ScalarStyle, Span, Tag};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::{place, scalar};
use crate::faults::{Fault, Faults};
use crate::limits;
use crate::node::{At, Entry, Kind, Node, short};
use crate::path::Path;

/// A fault after which the rest of the text is not read.
pub(super) struct Stop {
    pub(super) at: At,
    pub(super) reason: String,
    pub(super) suggestion: Option<&'static str>,
}

impl Stop {
    fn new(at: At, reason: impl Into<String>) -> Self {
        Self {
            at,
            reason: reason.into(),
            suggestion: None,
        }
    }
}

/// What a value costs each time that it stands in the tree.
#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
    levels: usize,
}

/// A map or list that has begun.
struct Frame {
    at: At,
    anchor: usize,
    size: Size,
    of: Of,
}

enum Of {
    List(Vec<Rc<Node>>),
    Map {
        entries: Vec<Entry>,
        seen: HashMap<String, At>,
        key: Option<Key>,
    },
}

/// The key whose value comes next.
struct Key {
    text: String,
    at: At,
    /// Its entry is left out: a fault has been reported.
    is_refused: bool,
}

pub(super) struct Builder<'f> {
    faults: &'f Faults,
    open: Vec<Frame>,
    anchors: HashMap<usize, (Rc<Node>, Size)>,
    /// Anchors of maps and lists that have not ended.
    unfinished: HashSet<usize>,
    root: Option<Rc<Node>>,
    documents: usize,
    aliases: usize,
    nodes: usize,
    bytes: usize,
}

impl<'f> Builder<'f> {
    pub(super) fn new(faults: &'f Faults) -> Self {
        Self {
            faults,
            open: Vec::new(),
            anchors: HashMap::new(),
            unfinished: HashSet::new(),
            root: None,
            documents: 0,
            aliases: 0,
            nodes: 0,
            bytes: 0,
        }
    }

    pub(super) fn finish(self) -> Option<Rc<Node>> {
        self.root
    }

    pub(super) fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Stop> {
        let at = place(&span.start);
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let mut stop = Stop::new(at, "a second document begins here");
                    stop.suggestion = Some("give one document; remove the `---` between them");
                    return Err(stop);
                }
                Ok(())
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(text, style, anchor, tag.as_deref(), at)
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(anchor, at, tag.as_deref(), "seq", Of::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let of = Of::Map {
                    entries: Vec::new(),
                    seen: HashMap::new(),
                    key: None,
                };
                self.begin(anchor, at, tag.as_deref(), "map", of)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let frame = self.open.pop().expect("what ends has begun");
                let kind = match frame.of {
                    Of::List(items) => Kind::List(items),
                    Of::Map { entries, .. } => Kind::Map(entries),
                };
                self.unfinished.remove(&frame.anchor);
                let mut size = frame.size;
                size.levels += 1;
                self.put(kind, frame.at, frame.anchor, size);
                Ok(())
            }
        }
    }

    /// Whether the next value is a key.
    fn expects_key(&self) -> bool {
        let top = self.open.last().map(|frame| &frame.of);
        matches!(top, Some(Of::Map { key: None, .. }))
    }

    fn begin(
        &mut self,
        anchor: usize,
        at: At,
        tag: Option<&Tag>,
        core: &str,
        of: Of,
    ) -> Result<(), Stop> {
        if self.expects_key() {
            return Err(Stop::new(at, "a key is a map or a list; keys are strings"));
        }
        if self.open.len() >= limits::LEVELS_MAX {
            let max = limits::LEVELS_MAX;
            let reason = format!("more than {max} levels of maps and lists");
            return Err(Stop::new(at, reason));
        }
        if let Some(tag) = tag
            && !(tag.is_yaml_core_schema() && tag.suffix == core)
        {
            self.refuse(
                at,
                format!("the tag `{}` is not known here", shown(tag)),
                None,
            );
        }
        let size = Size {
            nodes: 1,
            ..Size::default()
        };
        self.count(at, size)?;
        if anchor > 0 {
            self.unfinished.insert(anchor);
        }
        self.open.push(Frame {
            at,
            anchor,
            size,
            of,
        });
        Ok(())
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        at: At,
    ) -> Result<(), Stop> {
        let size = Size {
            nodes: 1,
            bytes: text.len(),
            levels: 0,
        };
        self.count(at, size)?;
        if self.expects_key() {
            let is_merge = text == "<<" && style == ScalarStyle::Plain;
            if let Some(tag) = tag.filter(|tag| !(tag.is_yaml_core_schema() && tag.suffix == "str"))
            {
                let reason = format!("a key has the tag `{}`; keys are strings", shown(tag));
                self.refuse(at, reason, None);
            }
            let key = Rc::new(Node {
                at: Some(at),
                kind: Kind::Scalar(Value::from(&*text)),
            });
            self.key(text.into_owned(), at, is_merge);
            if anchor > 0 {
                self.anchors.insert(anchor, (key, size));
            }
            self.grow(size);
            return Ok(());
        }
        let value = match tag {
            None if style == ScalarStyle::Plain => scalar::plain(&text),
            None => Ok(Value::from(&*text)),
            Some(tag) if tag.is_yaml_core_schema() => scalar::tagged(&tag.suffix, &text),
            Some(_) => Err("only the tags of the core schema are known, such as !!str"),
        };
        let value = value.unwrap_or_else(|reason| {
            self.refuse(at, format!("{reason}: `{}`", short(&text)), None);
            Value::from(&*text)
        });
        self.put(Kind::Scalar(value), at, anchor, size);
        Ok(())
    }

    /// Notes a key; one that stands twice, or asks for a merge, is refused with its value.
    fn key(&mut self, text: String, at: At, is_merge: bool) {
        let Some(Frame {
            of: Of::Map { seen, key, .. },
            ..
        }) = self.open.last_mut()
        else {
            return;
        };
        let earlier = seen.get(&text).copied();
        if earlier.is_none() {
            seen.insert(text.clone(), at);
        }
        *key = Some(Key {
            text: text.clone(),
            at,
            is_refused: is_merge || earlier.is_some(),
        });
        if is_merge {
            let instead = "write the members out, or quote the key if `<<` is its name";
            self.refuse(
                at,
                "merge keys (`<<`) are not part of YAML 1.2".to_owned(),
                Some(instead),
            );
        } else if let Some(earlier) = earlier {
            let reason = format!(
                "duplicate key `{}`; the first is in line {}",
                short(&text),
                earlier.line
            );
            self.refuse(at, reason, None);
        }
    }

    fn alias(&mut self, anchor: usize, at: At) -> Result<(), Stop> {
        self.aliases += 1;
        if self.aliases > limits::ALIASES_MAX {
            let reason = format!("more than {} aliases", limits::ALIASES_MAX);
            return Err(Stop::new(at, reason));
        }
        if self.expects_key() {
            return Err(Stop::new(at, "a key is an alias; keys are written out"));
        }
        if self.unfinished.contains(&anchor) {
            return Err(Stop::new(
                at,
                "an alias stands inside of what it stands for",
            ));
        }
        let Some((node, size)) = self.anchors.get(&anchor) else {
            return Err(Stop::new(at, "an alias without anchor"));
        };
        let (node, size) = (Rc::clone(node), *size);
        if self.open.len() + size.levels > limits::LEVELS_MAX {
            let max = limits::LEVELS_MAX;
            let reason = format!("more than {max} levels of maps and lists, with this alias");
            return Err(Stop::new(at, reason));
        }
        self.count(at, size)?;
        self.attach(node, size);
        Ok(())
    }

    /// Counts a value against the limits of the whole document.
    fn count(&mut self, at: At, size: Size) -> Result<(), Stop> {
        self.nodes += size.nodes;
        self.bytes += size.bytes;
        if self.nodes > limits::NODES_MAX {
            let max = limits::NODES_MAX;
            let reason = format!("more than {max} keys and values, counting those behind aliases");
            return Err(Stop::new(at, reason));
        }
        if self.bytes > limits::EXPANDED_BYTES_MAX {
            let max = limits::EXPANDED_BYTES_MAX;
            let reason = format!("more than {max} bytes of text, counting those behind aliases");
            return Err(Stop::new(at, reason));
        }
        Ok(())
    }

    fn put(&mut self, kind: Kind, at: At, anchor: usize, size: Size) {
        let node = Rc::new(Node { at: Some(at), kind });
        if anchor > 0 {
            self.anchors.insert(anchor, (Rc::clone(&node), size));
        }
        self.attach(node, size);
    }

    fn attach(&mut self, node: Rc<Node>, size: Size) {
        self.grow(size);
        let Some(frame) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        match &mut frame.of {
            Of::List(items) => items.push(node),
            Of::Map { entries, key, .. } => {
                let key = key.take().expect("a value of a map follows its key");
                if !key.is_refused {
                    entries.push(Entry {
                        key: key.text,
                        at: Some(key.at),
                        value: node,
                    });
                }
            }
        }
    }

    /// Adds to the size of the innermost map or list.
    fn grow(&mut self, size: Size) {
        if let Some(frame) = self.open.last_mut() {
            frame.size.nodes += size.nodes;
            frame.size.bytes += size.bytes;
            frame.size.levels = frame.size.levels.max(size.levels);
        }
    }

    /// Reports a fault at the place that is being read.
    fn refuse(&self, at: At, reason: String, suggestion: Option<&str>) {
        self.faults.error_with(|| {
            let mut path = Path::default();
            for frame in &self.open {
                path = match &frame.of {
                    Of::List(items) => path.index(items.len()),
                    Of::Map { key: Some(key), .. } => path.key(&key.text),
                    Of::Map { key: None, .. } => path,
                };
            }
            Fault::new(&path, Some(at), reason).suggest(suggestion)
        });
    }
}

fn shown(tag: &Tag) -> String {
    if tag.is_yaml_core_schema() {
        return short(&format!("!!{}", tag.suffix));
    }
    short(&tag.to_string())
}
