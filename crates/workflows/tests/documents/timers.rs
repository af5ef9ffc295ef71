//! Phases that begin later than they could.

use super::{document, errors, sound};
use serde_json::{Map, Value, json};
use taskledger_domain::task::call::parse_tasks;
use taskledger_workflows::{UnfitTrigger, read};

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// `start_at` and `params.delay_seconds` of the only phase, in a run with this trigger.
fn timers(members: &str, trigger: Value) -> Result<[Value; 2], UnfitTrigger> {
    let workflow = sound(&document(&format!("  a: {{assign: x, {members}}}\n")));
    let tasks = workflow.tasks(&map(trigger), None)?;
    let parsed = parse_tasks(&Value::from(tasks.clone()));
    assert!(parsed.is_ok(), "{members}: {parsed:?}");
    let task = &tasks[1];
    Ok([
        task["start_at"].clone(),
        task["params"]["delay_seconds"].clone(),
    ])
}

#[test]
fn times_and_delays_become_those_of_the_task() {
    let at = "2026-01-31T13:00:00.000000Z";
    for (members, trigger, expected) in [
        (
            "start_at: 2026-01-31T14:00:00+01:00",
            json!({}),
            json!([at, null]),
        ),
        (
            "start_at: $trigger.at",
            json!({"at": "2026-01-31T13:00:00Z"}),
            json!([at, null]),
        ),
        (
            "start_at: $trigger.at",
            json!({"at": null}),
            json!([null, null]),
        ),
        ("start_at: $trigger.at", json!({}), json!([null, null])),
        (
            "start_at: \"$trigger.when#/begin\"",
            json!({"when": {"begin": "2026-01-31T13:00:00Z"}}),
            json!([at, null]),
        ),
        (
            "start_at: $initial_state.at, initial_state: {at: 2026-01-31T13:00:00Z}",
            json!({}),
            json!([at, null]),
        ),
        (
            "start_at: null, delay_seconds: 0",
            json!({}),
            json!([null, null]),
        ),
        ("delay_seconds: 90", json!({}), json!([null, 90])),
        ("delay_seconds: 90.0", json!({}), json!([null, 90])),
        (
            "delay_seconds: 0.25, start_at: 2026-01-31T13:00:00Z",
            json!({}),
            json!([at, 0.25]),
        ),
    ] {
        let found = timers(members, trigger).map(|found| json!(found));
        assert_eq!(found, Ok(expected), "{members}");
    }
}

#[test]
fn a_delay_stands_beside_a_retry() {
    let workflow = sound(&document(
        "  a: {assign: x, delay_seconds: 5, retry: {max_attempts: 2}}\n",
    ));
    let tasks = workflow.tasks(&Map::new(), None).expect("it fits");
    let params = &tasks[1]["params"];
    assert_eq!(
        (&params["delay_seconds"], &params["retry"]["max_attempts"]),
        (&json!(5), &json!(2))
    );
}

#[test]
fn other_times_and_delays_are_faults_with_their_place() {
    let found = errors(&read(
        &document(
            "  a: {assign: x, start_at: tomorrow}\n  b: {assign: x, start_at: 7, delay_seconds: soon}\n  c: {assign: x, start_at: a.at, delay_seconds: -1}\n  d: {assign: x, delay_seconds: 31536001}\n  e: {assign: x, start_at: $initial_state.at, initial_state: {at: 7}}\n",
        ),
        false,
    ));
    let forms = "an RFC 3339 date and time with offset, `$trigger.<key>` or `$initial_state.<key>`";
    let delay = "a number of seconds from 0 to 31536000";
    let time = "an RFC 3339 date and time with offset, such as 2026-01-31T14:00:00Z";
    assert_eq!(
        found,
        [
            format!("4:28 workflow.a.start_at: `start_at` must be {forms}, found `\"tomorrow\"`"),
            format!("5:28 workflow.b.start_at: `start_at` must be {forms}, found `7`"),
            format!(
                "5:46 workflow.b.delay_seconds: `delay_seconds` must be {delay}, found `\"soon\"`"
            ),
            format!("6:28 workflow.c.start_at: `start_at` must be {forms}, found `\"a.at\"`"),
            format!("6:49 workflow.c.delay_seconds: `delay_seconds` must be {delay}, found `-1`"),
            format!(
                "7:33 workflow.d.delay_seconds: `delay_seconds` must be {delay}, found `31536001`"
            ),
            format!(
                "8:28 workflow.e.start_at: `start_at` must be {time}, `$initial_state.at` is 7"
            ),
        ]
    );
    let near = read(&document("  a: {assign: x, delay_second: 5}\n"), true);
    assert_eq!(
        near.errors[0].suggestion.as_deref(),
        Some("did you mean `delay_seconds`?")
    );
}

#[test]
fn a_time_in_another_year_is_refused_with_the_accepted_years() {
    let accepted =
        "must be an RFC 3339 date and time with offset, in the years 0000 to 9999 in UTC";
    let year = "10000-01-01T00:00:00Z";
    for members in [
        format!("start_at: {year}"),
        format!("start_at: $initial_state.at, initial_state: {{at: {year}}}"),
    ] {
        let found = errors(&read(
            &document(&format!("  a: {{assign: x, {members}}}\n")),
            false,
        ));
        assert!(found[0].contains(accepted), "{found:?}");
    }
    let refused = timers("start_at: $trigger.at", json!({"at": year})).expect_err("it is no time");
    assert!(refused.to_string().contains(accepted), "{refused}");
}

#[test]
fn a_trigger_without_a_time_where_one_is_named_is_refused() {
    for value in [json!("tomorrow"), json!(7), json!(["2026-01-31T13:00:00Z"])] {
        let refused = timers("start_at: $trigger.at", json!({"at": value}));
        let refused = refused.expect_err("it is no time");
        assert_eq!(
            refused.to_string(),
            format!(
                "`start_at` of phase `a`: `$trigger.at` must be an RFC 3339 date and time with offset, such as 2026-01-31T14:00:00Z, found {value}"
            )
        );
    }
}

#[test]
fn another_time_is_a_difference_and_one_of_the_trigger_may_refuse_callers() {
    let of = |members: &str| sound(&document(&format!("  a: {{assign: x{members}}}\n")));
    let (plain, fixed) = (
        of(""),
        of(", start_at: 2026-01-31T13:00:00Z, delay_seconds: 5"),
    );
    let diff = plain.diff(&fixed);
    let told = |diff: &taskledger_workflows::Diff| -> Vec<(String, Option<&'static str>)> {
        let changes = diff.changes.iter();
        changes.map(|it| (it.path.clone(), it.breaking)).collect()
    };
    assert_eq!(
        told(&diff),
        [
            ("workflow.a.delay_seconds".to_owned(), None),
            ("workflow.a.start_at".to_owned(), None)
        ]
    );
    let asked = of(", start_at: $trigger.at, delay_seconds: 5.0");
    assert_eq!(
        told(&fixed.diff(&asked)),
        [(
            "workflow.a.start_at".to_owned(),
            Some("triggers that were accepted may be refused")
        )]
    );
    assert_eq!(told(&asked.diff(&fixed))[0].1, None);
}

#[test]
fn a_reference_to_what_the_initial_state_lacks_is_told_where_it_stands() {
    let reports = |members: &str| {
        let text = document(&format!("  a: {{assign: x, {members}}}\n"));
        let warned = read(&text, false);
        assert_eq!(
            (errors(&warned), warned.warnings.len()),
            (vec![], 1),
            "{members}"
        );
        let strict = read(&text, true);
        let of_strict = strict.errors.iter().map(|fault| fault.suggestion.clone());
        (errors(&strict), of_strict.flatten().next().unwrap())
    };
    let (told, suggestion) = reports("start_at: $initial_state.at");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].ends_with("workflow.a.start_at: `initial_state` of the phase has no `at`: the phase is not held back"),
        "{told:?}"
    );
    assert_eq!(
        suggestion,
        "add it to `initial_state`, null if it is to have no value"
    );
    let (told, suggestion) = reports(
        "initial_state: {begin_at: 2026-01-31T13:00:00Z}, start_at: $initial_state.begin_a",
    );
    assert_eq!(
        (told.len(), suggestion.as_str()),
        (1, "did you mean `begin_at`?")
    );
    let (told, _) = reports("initial_state: {n: {x: 1}}, skip_when: \"$initial_state.n#/y == 1\"");
    assert!(
        told[0].ends_with(
            "workflow.a.skip_when: `n` of `initial_state` has nothing at `/y`: the condition takes it for null"
        ),
        "{told:?}"
    );
    // Null is a value that was meant.
    for members in [
        "initial_state: {at: null}, start_at: $initial_state.at",
        "initial_state: {on: null}, skip_when: $initial_state.on",
    ] {
        let strict = read(&document(&format!("  a: {{assign: x, {members}}}\n")), true);
        assert_eq!(errors(&strict), Vec::<String>::new(), "{members}");
    }
}
