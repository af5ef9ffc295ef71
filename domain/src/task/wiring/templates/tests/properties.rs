//! Arbitrary texts as templates: each is refused with its path, or means what a second reader says it means.

use super::{filled, resolved, task};
use crate::limits;
use crate::task::wiring::tests::ATTEMPT;
use crate::task::wiring::{InputFault, Wiring};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Pieces of templates, so that texts get further than the first brace.
fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{{",
        "}}",
        "{{a.n}}",
        "{{ a.text }}",
        "{{a.list#/0}}",
        "{{a#/text}}",
        "{{$trigger.k}}",
        "{{b.n}}",
        "{{maybe.n}}",
        "{",
        "}",
        "\\",
        "\\\\",
        "a.n",
        "a",
        ".",
        "#",
        "#/x~1y",
        " ",
        "x",
        "é",
        "e\u{301}",
        "\0",
        "$",
        "\u{feff}",
    ]);
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn inputs() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => text().prop_map(Value::from),
        1 => any::<i32>().prop_map(Value::from),
        1 => Just(json!(null)),
    ];
    let value = leaf.prop_recursive(3, 12, 3, |inner| {
        let key = prop::sample::select(vec!["x", "{{a.n}}", "a/b", "\0"]).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    (value.clone(), value).prop_map(|(x, y)| json!({"x": x, "y": y}))
}

fn result() -> Value {
    json!({"n": 7, "text": "{{a.n}} \\{{", "list": [true], "x": {"x/y": "deep"}})
}

/// What a text means after [`result`], read once from left to right; `None`: it is not well-formed, or names what
/// the result has not.
fn meaning(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let backslashes = rest.len() - rest.trim_start_matches('\\').len();
        let (run, behind) = rest.split_at(backslashes);
        let Some(inner) = behind.strip_prefix("{{") else {
            // Backslashes that stand before anything else are text.
            let next = behind.chars().next().map_or(0, char::len_utf8);
            out += run;
            out += &behind[..next];
            rest = &behind[next..];
            continue;
        };
        out += &run[..backslashes / 2];
        if backslashes % 2 == 1 {
            out += "{{";
            rest = inner;
            continue;
        }
        let (reference, behind) = inner.split_once("}}")?;
        let value = match reference.trim() {
            "a.n" | "a.n#" => "7",
            "a.text" | "a#/text" => "{{a.n}} \\{{",
            "a.list#/0" => "true",
            "a.x#/x~1y" => "deep",
            _ => return None,
        };
        out += value;
        rest = behind;
    }
    Some(out)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_inputs_are_templates_or_have_faults_with_their_paths(inputs in inputs()) {
        match resolved(&task(&inputs)) {
            Err(faults) => {
                prop_assert!((1..=limits::VIOLATIONS_MAX).contains(&faults.len()));
                for (path, reason) in faults {
                    prop_assert!(path.starts_with("inputs/"), "{path}: {reason}");
                }
            }
            Ok(stored) => {
                prop_assert_eq!(&resolved(&stored).unwrap(), &stored);
                let wiring = Wiring::of(&stored);
                let uses = wiring.uses(&stored.inputs).len();
                prop_assert!(uses >= wiring.needs().count());
                let result = result();
                let filled = wiring.inputs(&stored.inputs, ATTEMPT, |_| result.as_object());
                match filled {
                    Ok(filled) => {
                        let filled = Value::Object(filled.to_map());
                        let literal = serde_json::to_string(&inputs).unwrap();
                        if !literal.contains("{{") {
                            prop_assert_eq!(filled, inputs);
                        }
                    }
                    Err(InputFault::Unresolvable(refs)) => prop_assert!(!refs.is_empty()),
                    Err(InputFault::Unlike(texts)) => prop_assert!(!texts.is_empty()),
                    Err(InputFault::Unfit(why)) => prop_assert!(false, "{}", why),
                }
            }
        }
    }

    #[test]
    fn a_text_means_what_a_second_reader_says(text in text()) {
        // Behind a letter, so that the text is never one template.
        let text = format!("x{text}");
        let inputs = json!({"x": text});
        let read = resolved(&task(&inputs)).ok().and_then(|_| filled(&inputs, &result()).ok());
        let expected = meaning(&text).map(|text| json!({"x": text}));
        prop_assert_eq!(read, expected);
    }
}
