//! The path of a value: `workflow.fetch.inputs.url`, `workflow["a.b"].depends_on[0]`.

use std::fmt::Write;
use taskledger_domain::limits::cut;

use crate::limits;

/// A path under construction. Names that are no plain words stand in brackets, as JSON strings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn key(&self, name: &str) -> Self {
        let mut path = self.0.clone();
        let beginning = cut(name, limits::NAME_BYTES_MAX);
        let is_word = |text: &str| {
            text.chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
        };
        if beginning.len() == name.len() && !name.is_empty() && is_word(name) {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(name);
        } else {
            let ellipsis = if beginning.len() == name.len() {
                ""
            } else {
                "…"
            };
            let quoted = serde_json::Value::from(format!("{beginning}{ellipsis}"));
            write!(path, "[{quoted}]").expect("memory can be written to");
        }
        Self::bounded(path)
    }

    pub(crate) fn index(&self, index: usize) -> Self {
        Self::bounded(format!("{}[{index}]", self.0))
    }

    fn bounded(mut path: String) -> Self {
        path.truncate(cut(&path, limits::PATH_BYTES_MAX).len());
        Self(path)
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn a_name_that_is_no_word_stands_in_brackets() {
        let path = Path::default()
            .key("workflow")
            .key("a.b")
            .key("inputs")
            .index(3);
        assert_eq!(path.into_text(), r#"workflow["a.b"].inputs[3]"#);
        assert_eq!(Path::default().key("").into_text(), r#"[""]"#);
    }
}
