//! Types of the parts of values.

use super::properties::{config, declared, guided};
use super::type_of;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Pointers to all parts of a value.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{i}"), found);
            }
        }
        Value::Object(map) => {
            for (key, member) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                pointers(member, &format!("{at}/{key}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn of_more_alternatives_than_are_looked_at_nothing_is_known() {
    for (count, is_any) in [(1, false), (990, false), (1000, true), (2000, true)] {
        let literals = vec!["1"; count].join("|");
        for of in [
            format!("array<boolean>|{literals}"),
            format!("{literals}|array<boolean>"),
            format!("({literals}|array<boolean>)?"),
        ] {
            let item = type_of(&json!(of)).at("/0").expect("arrays have items");
            assert_eq!(item.is_any(), is_any, "{count}");
            assert!(item.accepts(&json!(true)), "{count}");
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_part_of_a_value_is_of_the_type_at_its_place(
        declared in declared(),
        mut choices in prop::collection::vec(any::<u8>(), 0..60),
        validation in prop::sample::select(vec!["deep", "shallow"]),
    ) {
        let of = declared.of(0, validation);
        let value = guided(&declared.pair[0], &declared.types, &mut choices, 0);
        if of.accepts(&value) {
            prop_assert!(!value.is_object() || of.may_be_object(), "{value} of {of}");
            let mut found = Vec::new();
            pointers(&value, "", &mut found);
            for pointer in found {
                let part = value.pointer(&pointer).expect("it leads to a part");
                let there = of.at(&pointer);
                prop_assert!(there.is_some_and(|it| it.accepts(part)), "{pointer} in {value} of {of}");
            }
        }
    }
}
