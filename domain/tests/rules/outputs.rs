//! What attempts make before they end: parts follow each other, within limits, and belong to one attempt.

use crate::support::{complete, refusal};
use taskledger_domain::flow::{
    Append, Command, Event, Fault, Kind, Outdated, OutputExtent, OutputPart, Refusal,
};
use taskledger_domain::limits::{OUTPUT_BYTES_MAX, OUTPUT_PART_BYTES_MAX, OUTPUT_PARTS_MAX};
use taskledger_domain::task::Status::{Completed, InProgress};
use taskledger_domain::testing::{Scenario, execute, given, id, task};

fn running() -> Scenario {
    let s = given(vec![task("a").attempts(2, 1000)]);
    s.when(execute("a")).then(&[("a", InProgress)])
}

fn append(attempt: u32, number: u32, text: impl Into<String>) -> Command {
    Command::Append(Append {
        task: id("a"),
        attempt,
        lease: None,
        number,
        part: OutputPart::Text(text.into()),
    })
}

/// The numbers of the parts that the last command has appended.
fn appended(s: &Scenario) -> Vec<u32> {
    let (events, _) = s.last.as_ref().expect("it was accepted");
    let number = |event: &Event| match event {
        Event::TaskOutputAppended(e) => Some(e.number),
        _ => None,
    };
    events.iter().filter_map(number).collect()
}

/// How many parts the last command says that a result comes behind.
fn parts_before_the_result(s: &Scenario) -> Option<u32> {
    let (events, _) = s.last.as_ref().expect("it was accepted");
    events.iter().find_map(|event| match event {
        Event::TaskCompleted(e) => Some(e.parts),
        _ => None,
    })
}

#[test]
fn parts_are_numbered_and_the_result_says_how_many_came_before_it() {
    let s = running().when(append(1, 1, "one")).accepted();
    assert_eq!(appended(&s), [1]);
    let s = s.when(append(1, 2, "two")).accepted();
    assert_eq!(appended(&s), [2]);
    let s = s.when(complete("a", 1)).then(&[("a", Completed)]);
    assert_eq!(parts_before_the_result(&s), Some(2));
    let s = running().when(complete("a", 1)).then(&[("a", Completed)]);
    assert_eq!(parts_before_the_result(&s), Some(0));
}

#[test]
fn a_part_that_is_repeated_changes_nothing_and_one_that_leaves_a_gap_is_refused() {
    let s = running().when(append(1, 1, "one")).accepted();
    let s = s.when(append(1, 1, "one")).accepted();
    assert!(appended(&s).is_empty());
    for number in [0, 3, u32::MAX] {
        let s = s.clone().when(append(1, number, "three"));
        let _ = s.rejects(Kind::Invalid);
    }
}

#[test]
fn another_attempt_begins_its_output_anew() {
    let s = running().when(append(1, 1, "lost")).accepted();
    let s = s.fails("a").after_ms(1000);
    let s = s.then(&[("a", InProgress)]);
    let late = s.clone().when(append(1, 1, "late"));
    let _ = late.is_outdated(Outdated::Attempt);
    let s = s.when(append(2, 1, "one")).accepted();
    assert_eq!(appended(&s), [1]);
    let s = s.when(complete("a", 2)).accepted();
    assert_eq!(parts_before_the_result(&s), Some(1));
}

#[test]
fn parts_are_few_and_small() {
    let s = running();
    let large = append(1, 1, "x".repeat(OUTPUT_PART_BYTES_MAX + 1));
    let large = s.clone().when(large).rejects(Kind::Invalid);
    let fault = Fault::OutputTooLarge {
        task: id("a"),
        extent: OutputExtent::Part,
        bytes: OUTPUT_PART_BYTES_MAX + 1,
        bytes_max: OUTPUT_PART_BYTES_MAX,
    };
    assert_eq!(*refusal(&large), Refusal::invalid([fault]));
    let mut many = s.clone();
    for number in 1..=OUTPUT_PARTS_MAX {
        many = many.when(append(1, number, "x")).accepted();
    }
    let many = many.when(append(1, OUTPUT_PARTS_MAX + 1, "x"));
    let many = many.rejects(Kind::Invalid);
    let fault = Fault::TooManyOutputParts {
        task: id("a"),
        parts: OUTPUT_PARTS_MAX + 1,
        parts_max: OUTPUT_PARTS_MAX,
    };
    assert_eq!(*refusal(&many), Refusal::invalid([fault]));
    let mut full = s;
    let part = "x".repeat(OUTPUT_PART_BYTES_MAX);
    let fit = u32::try_from(OUTPUT_BYTES_MAX / OUTPUT_PART_BYTES_MAX).expect("few");
    for number in 1..=fit {
        full = full.when(append(1, number, &*part)).accepted();
    }
    let full = full.when(append(1, fit + 1, "x")).rejects(Kind::Invalid);
    let _ = full.when(complete("a", 1)).then(&[("a", Completed)]);
}
