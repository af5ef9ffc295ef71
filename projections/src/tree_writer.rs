//! Nested JSON of a task tree, written row by row. spec: data-model / TaskTreeNode
//!
//! Owns: the text `{"task": .., "children": [..]}`. Nothing recurses and no node is kept: the
//! writer remembers only how many nodes are open.

use crate::TaskView;

/// Writes a tree from its nodes in depth-first order.
#[derive(Debug, Default)]
pub struct TreeWriter {
    out: Vec<u8>,
    /// Nodes whose `children` array is open; the next node at this depth is a child of the last.
    open: usize,
    started: bool,
}

impl TreeWriter {
    /// A writer that has written nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes the next node. `depth` is 0 for the root, which comes first and only once, and at
    /// most one more than the depth of the node before. Children come after their parent, in
    /// order. Cost: O(size of the task).
    ///
    /// # Panics
    /// When the order is broken: a fault of the caller, never of the data.
    pub fn push(&mut self, depth: usize, task: &TaskView) {
        assert!(
            (depth == 0) != self.started && depth <= self.open,
            "a tree is written depth first: node at depth {depth} while {} are open",
            self.open
        );
        let sibling = depth < self.open;
        while self.open > depth {
            self.out.extend_from_slice(b"]}");
            self.open -= 1;
        }
        if sibling {
            self.out.push(b',');
        }
        self.out.extend_from_slice(br#"{"task":"#);
        serde_json::to_writer(&mut self.out, task)
            .expect("a task can always be written as JSON to memory");
        self.out.extend_from_slice(br#","children":["#);
        self.open += 1;
        self.started = true;
    }

    /// Bytes that are waiting to be taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether no bytes are waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes the text written since the last call, for callers that send it in pieces.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Closes what is open and gives the rest of the text.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        for _ in 0..self.open {
            self.out.extend_from_slice(b"]}");
        }
        self.out
    }

    /// As [`Self::finish`], with one more member in the outermost node.
    ///
    /// # Panics
    /// When nothing was written: there is no node then.
    #[must_use]
    pub fn finish_with(self, member: &str, value: &impl serde::Serialize) -> Vec<u8> {
        let mut out = self.finish();
        assert_eq!(out.pop(), Some(b'}'), "a tree ends with its root");
        let member = serde_json::to_string(member).expect("a text can be written as JSON");
        let value = serde_json::to_string(value).expect("the caller gives what JSON can say");
        out.extend_from_slice(format!(",{member}:{value}}}").as_bytes());
        out
    }
}
