//! The official test suite of JSON Schema, draft-07, through our own compilation and check.
//!
//! Every case agrees with the suite or is one of the deviations listed here, each with its reason;
//! a deviation that no case shows any more is an error too.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use taskledger_domain::Violation;
use taskledger_domain::task::inputs;

const REQUIRED: &str = include_str!("data/json-schema-test-suite/draft7-required.json");
const OPTIONAL: &str = include_str!("data/json-schema-test-suite/draft7-optional.json");
const FORMAT: &str = include_str!("data/json-schema-test-suite/draft7-format.json");

type Suite = BTreeMap<String, Vec<Group>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    description: String,
    schema: Value,
    tests: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    description: String,
    data: Value,
    valid: bool,
}

/// File and description of a group.
type Place = (&'static str, &'static str);

/// Groups whose schemas are refused because they have an `$id` below the root that is no `#name`.
/// What a `$ref` means would then depend on where it stands; people read `#/...` from the root.
const BASE_CHANGES: &[Place] = &[
    ("id", "id inside an enum is not a real identifier"),
    (
        "ref",
        "$id must be resolved against nearest parent, not just immediate parent",
    ),
    (
        "ref",
        "$ref prevents a sibling $id from changing the base uri",
    ),
    (
        "ref",
        "Location-independent identifier with base URI change in subschema",
    ),
    ("ref", "Recursive references between schemas"),
    ("ref", "ref to else"),
    ("ref", "ref to if"),
    ("ref", "ref to then"),
    ("ref", "ref with absolute-path-reference"),
    ("ref", "refs with relative uris and defs"),
    ("ref", "relative refs with absolute uris and defs"),
    ("refRemote", "base URI change"),
    ("refRemote", "base URI change - change folder"),
    ("refRemote", "base URI change - change folder in subschema"),
    (
        "unknownKeyword",
        "$id inside an unknown keyword is not a real identifier",
    ),
];
const BASE_CHANGES_REASON: &str = "changes the base of references below the root";

/// Groups whose schemas are refused because a `$ref` leaves them, the meta-schema's included: a
/// schema must mean the same everywhere and always, and nothing is fetched.
const LEAVES: &[Place] = &[
    (
        "cross-draft",
        "refs to future drafts are processed as future drafts",
    ),
    ("definitions", "validate definition against metaschema"),
    ("ref", "remote ref, containing refs itself"),
    ("refRemote", "$ref to $ref finds location-independent $id"),
    ("refRemote", "Location-independent identifier in remote ref"),
    ("refRemote", "fragment within remote ref"),
    ("refRemote", "ref within remote ref"),
    ("refRemote", "remote ref"),
    ("refRemote", "remote ref with ref to definitions"),
    (
        "refRemote",
        "retrieved nested refs resolve relative to their URI not $id",
    ),
    ("refRemote", "root ref in remote ref"),
];
const LEAVES_REASON: &str = "refers to something outside of the schema, or to no subschema of it";

fn run(part: &str, text: &str, [cases_expected, refused_expected]: [usize; 2]) {
    let suite: Suite = serde_json::from_str(text).expect("the data file is JSON");
    let (mut cases, mut refused) = (0, 0);
    let mut faults = Vec::new();
    for (file, groups) in &suite {
        for group in groups {
            let place = (file.as_str(), group.description.as_str());
            let deviates = BASE_CHANGES.contains(&place) || LEAVES.contains(&place);
            cases += group.tests.len();
            refused += if deviates { group.tests.len() } else { 0 };
            faults.extend(
                judge(group, place)
                    .map(|fault| format!("{part}/{}: {}: {fault}", place.0, place.1)),
            );
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let found = [cases, refused];
    assert_eq!(
        found,
        [cases_expected, refused_expected],
        "cases of {part}, of refused groups"
    );
}

/// What is not as the suite, or the list of deviations, says.
fn judge(group: &Group, place: (&str, &str)) -> Option<String> {
    let reasons: &[&str] = if BASE_CHANGES.contains(&place) {
        &[BASE_CHANGES_REASON, LEAVES_REASON]
    } else if LEAVES.contains(&place) {
        &[LEAVES_REASON]
    } else {
        &[]
    };
    let compiled = match inputs::compile(&group.schema) {
        Ok(_) if !reasons.is_empty() => return Some("is not refused any more".to_owned()),
        Ok(compiled) => compiled,
        Err(faults) => {
            let told = |f: &Violation| reasons.contains(&f.reason.as_str());
            let named = faults
                .iter()
                .any(|f| reasons.first() == Some(&f.reason.as_str()));
            let fine = named && faults.iter().all(told);
            return (!fine).then(|| format!("is refused: {faults:?}"));
        }
    };
    let other: Vec<&str> = (group.tests.iter())
        .filter(|case| compiled.check(&case.data).is_ok() != case.valid)
        .map(|case| case.description.as_str())
        .collect();
    (!other.is_empty()).then(|| format!("comes out otherwise: {other:?}"))
}

#[test]
fn the_required_part_of_the_official_suite_holds() {
    run("required", REQUIRED, [913, 49]);
}

#[test]
fn the_optional_part_of_the_official_suite_holds() {
    run("optional", OPTIONAL, [118, 8]);
}

#[test]
fn the_formats_of_the_official_suite_hold() {
    run("format", FORMAT, [434, 0]);
}

#[test]
fn every_deviation_is_one_of_a_group_of_the_suite() {
    let suites = [REQUIRED, OPTIONAL, FORMAT]
        .map(|text| serde_json::from_str::<Suite>(text).expect("the data file is JSON"));
    for (file, group) in BASE_CHANGES.iter().chain(LEAVES) {
        let groups = suites.iter().filter_map(|s| s.get(*file)).flatten();
        let found = groups.filter(|g| g.description == *group).count();
        assert_eq!(found, 1, "{file}: {group}");
    }
}
