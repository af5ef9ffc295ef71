//! YAML 1.2 text to a tree, within limits. spec: YAML 1.2.2, core schema
//!
//! The parser gives events; the tree, its limits and what is refused are ours. Nothing recurses, and a text that is
//! too deep or too large is left where the limit is met.

mod builder;
mod scalar;
mod surrogates;

use saphyr_parser::Parser;
use std::rc::Rc;

use crate::faults::{Fault, Faults};
use crate::limits;
use crate::node::{At, Node, short};
use crate::path::Path;
use builder::{Builder, Stop};

/// Reads one document. `None`: there is no tree, and `faults` says why. Faults that leave a tree, such as a
/// duplicate key, are reported and the tree is returned. Cost: O(bytes), at most [`limits::DOCUMENT_BYTES_MAX`].
pub(crate) fn read(text: &str, faults: &Faults) -> Option<Rc<Node>> {
    let refuse = |at, reason: String, suggestion: Option<&str>| {
        faults.error(Fault::new(&Path::default(), at, reason).suggest(suggestion));
        None
    };
    if text.len() > limits::DOCUMENT_BYTES_MAX {
        let max = limits::DOCUMENT_BYTES_MAX;
        let reason = format!("the document has {} bytes, the limit is {max}", text.len());
        return refuse(None, reason, None);
    }
    if let Some((at, c)) = unprintable(text) {
        let code = u32::from(c);
        let reason = format!("YAML does not allow the character U+{code:04X}");
        let instead = format!("in a double-quoted string write `\\u{code:04X}`");
        return refuse(Some(at), reason, Some(&instead));
    }
    let mut builder = Builder::new(faults);
    let text = &*surrogates::joined(text);
    for event in Parser::new_from_str(text) {
        let stop = match event {
            Ok((event, span)) => match builder.take(event, &span) {
                Ok(()) => continue,
                Err(stop) => stop,
            },
            Err(error) => {
                let at = place(error.marker());
                let reason = match error.info().contains("recursion limit") {
                    true => format!("more than {} levels of maps and lists", limits::LEVELS_MAX),
                    false => format!("invalid YAML: {}", short(error.info())),
                };
                let tab = line(text, at).trim_start_matches(' ').starts_with('\t');
                let suggestion = tab.then_some("indent with spaces, not with tabs");
                return refuse(Some(at), reason, suggestion);
            }
        };
        let Stop {
            at,
            reason,
            suggestion,
        } = stop;
        return refuse(Some(at), reason, suggestion);
    }
    let Some(root) = builder.finish() else {
        let at = At { line: 1, column: 1 };
        return refuse(Some(at), "the document is empty".to_owned(), None);
    };
    Some(root)
}

/// The parser counts columns from 0.
fn place(marker: &saphyr_parser::Marker) -> At {
    let bounded = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    At {
        line: bounded(marker.line().max(1)),
        column: bounded(marker.col() + 1),
    }
}

fn line(text: &str, at: At) -> &str {
    text.lines().nth(at.line as usize - 1).unwrap_or_default()
}

/// The first character that no document may have: a C0 control other than tab and line ends. YAML would have the
/// others escaped, but a JSON text may hold them in its strings, and JSON is YAML. spec: YAML 1.2.2, 5.1
fn unprintable(text: &str) -> Option<(At, char)> {
    let refused = |c: char| c < ' ' && !matches!(c, '\t' | '\n' | '\r');
    let (index, c) = text.char_indices().find(|(_, c)| refused(*c))?;
    let before = &text[..index];
    // A line ends with LF, CR, or both, as the parser counts.
    let breaks = before.replace("\r\n", "\n");
    let lines = breaks.chars().filter(|c| matches!(c, '\n' | '\r')).count();
    let column = before
        .rsplit(['\n', '\r'])
        .next()
        .unwrap_or(before)
        .chars()
        .count();
    let bounded = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let at = At {
        line: bounded(lines + 1),
        column: bounded(column + 1),
    };
    Some((at, c))
}
