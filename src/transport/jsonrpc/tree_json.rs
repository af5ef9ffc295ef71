//! The JSON of long answers, written task by task. spec: data-model / TaskTreeNode
//!
//! Nothing recurses and no task is kept: a tree remembers only how many of its nodes are open.

use super::task_json::{MomentJson, TaskJson};
use crate::application::api::views::TaskView;
use crate::application::api::{Moment, TreeEncoder};

/// The result of `tasks.tree`: `{"task": .., "children": [..]}`.
#[derive(Debug, Default)]
pub struct TreeJson {
    out: Vec<u8>,
    /// Nodes whose `children` array is open; the next node at this depth is a child of the last.
    open: usize,
    started: bool,
}

/// The result of `tasks.children`: `{"children": [..]}`.
#[derive(Debug, Default)]
pub struct ChildrenJson {
    out: Vec<u8>,
    started: bool,
}

impl TreeEncoder for TreeJson {
    /// # Panics
    /// When the order is broken: a fault of the caller, never of the data.
    fn task(&mut self, depth: usize, task: &TaskView) {
        assert!(
            (depth == 0) != self.started && depth <= self.open,
            "a tree is written depth first: node at depth {depth} while {} are open",
            self.open
        );
        let is_sibling = depth < self.open;
        while self.open > depth {
            self.out.extend_from_slice(b"]}");
            self.open -= 1;
        }
        if is_sibling {
            self.out.push(b',');
        }
        self.out.extend_from_slice(br#"{"task":"#);
        write(&mut self.out, task);
        self.out.extend_from_slice(br#","children":["#);
        self.open += 1;
        self.started = true;
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn finish(mut self, as_of: Option<Moment>) -> Vec<u8> {
        assert!(self.started, "a tree has a root");
        for _ in 1..self.open {
            self.out.extend_from_slice(b"]}");
        }
        self.out.push(b']');
        close(self.out, as_of)
    }
}

impl TreeEncoder for ChildrenJson {
    fn task(&mut self, _depth: usize, task: &TaskView) {
        let before: &[u8] = if self.started { b"," } else { OPENING };
        self.out.extend_from_slice(before);
        write(&mut self.out, task);
        self.started = true;
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn finish(mut self, as_of: Option<Moment>) -> Vec<u8> {
        if !self.started {
            self.out.extend_from_slice(OPENING);
        }
        self.out.push(b']');
        close(self.out, as_of)
    }
}

const OPENING: &[u8] = br#"{"children":["#;

fn write(out: &mut Vec<u8>, task: &TaskView) {
    serde_json::to_writer(out, &TaskJson(task))
        .expect("a task can always be written as JSON to memory");
}

/// Ends the outermost object, with the moment that it shows as its last member.
fn close(mut out: Vec<u8>, as_of: Option<Moment>) -> Vec<u8> {
    if let Some(moment) = as_of {
        out.extend_from_slice(br#","as_of":"#);
        serde_json::to_writer(&mut out, &MomentJson(moment))
            .expect("a moment can always be written as JSON to memory");
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::task_json::tests::view;
    use taskledger_domain::testing::START;

    /// The text of an answer that is taken in pieces, with each task as its name only.
    fn written(
        mut encoder: impl TreeEncoder,
        nodes: &[(usize, &str)],
        as_of: Option<Moment>,
    ) -> String {
        let mut text = Vec::new();
        for (depth, name) in nodes {
            encoder.task(*depth, &view(name));
            text.extend(encoder.take());
        }
        text.extend(encoder.finish(as_of));
        let mut text = String::from_utf8(text).unwrap();
        for (_, name) in nodes {
            let whole = serde_json::to_string(&TaskJson(&view(name))).unwrap();
            text = text.replace(&whole, name);
        }
        text
    }

    #[test]
    fn a_tree_is_nested_by_depth() {
        let nodes = [(0, "a"), (1, "b"), (2, "c"), (2, "d"), (1, "e"), (2, "f")];
        let text = written(TreeJson::default(), &nodes, None);
        let expected = concat!(
            r#"{"task":a,"children":["#,
            r#"{"task":b,"children":[{"task":c,"children":[]},{"task":d,"children":[]}]},"#,
            r#"{"task":e,"children":[{"task":f,"children":[]}]}]}"#
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn the_moment_of_a_tree_is_the_last_member_of_its_root() {
        let moment = Moment {
            position: 7,
            time: START,
        };
        let text = written(TreeJson::default(), &[(0, "a"), (1, "b")], Some(moment));
        let expected = format!(
            r#"{{"task":a,"children":[{{"task":b,"children":[]}}],"as_of":{{"position":7,"time":"{START}"}}}}"#
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn children_are_a_list() {
        let text = written(ChildrenJson::default(), &[(0, "a"), (0, "b")], None);
        assert_eq!(text, r#"{"children":[a,b]}"#);
        assert_eq!(
            written(ChildrenJson::default(), &[], None),
            r#"{"children":[]}"#
        );
    }

    #[test]
    #[should_panic(expected = "depth first")]
    fn a_node_without_its_parent_is_a_fault() {
        written(TreeJson::default(), &[(0, "a"), (2, "b")], None);
    }
}
