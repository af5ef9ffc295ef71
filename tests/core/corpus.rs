//! Every file of the fuzzers' corpus through the same claims, in every test run. A file that once
//! made a fuzzer stop is added to `fuzz/corpus/<target>` and stays.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "../../fuzz/src/lib.rs"]
#[allow(
    unreachable_pub,
    unexpected_cfgs,
    reason = "the files belong to the fuzz package, whose lints and features are others"
)]
mod targets;

use std::path::Path;

/// Runs `target` on every file of its corpus, and names the file at which it stops.
fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let outcome = std::panic::catch_unwind(|| run(&bytes));
        assert!(outcome.is_ok(), "{}", path.display());
        count += 1;
    }
    assert!(count >= 20, "{}: {count} files", folder.display());
}

#[test]
fn every_body_of_the_corpus_is_answered_as_json_rpc_demands() {
    replay("envelope", targets::envelope::run);
}

#[test]
fn every_call_of_the_corpus_is_refused_with_reasons_or_survives() {
    replay("task_parser", targets::task_parser::run);
}

#[test]
fn every_stored_form_of_the_corpus_is_refused_or_reads_as_it_was_written() {
    replay("codec", targets::codec::run);
}

#[test]
fn every_sequence_of_commands_of_the_corpus_keeps_the_rules() {
    replay("commands", targets::commands::run);
}

#[test]
fn every_document_of_the_corpus_is_judged_within_bounds() {
    replay("documents", targets::documents::run);
}

#[test]
fn every_type_of_the_corpus_is_sound_or_has_bounded_faults() {
    replay("types", targets::types::run);
}

#[test]
fn every_template_of_the_corpus_is_refused_with_reasons_or_filled() {
    replay("templates", targets::templates::run);
}

#[test]
fn every_message_of_the_corpus_becomes_a_task_or_is_refused_by_the_name_of_a_member() {
    replay("eventbus", targets::eventbus::run);
}

#[test]
fn every_token_of_the_corpus_is_refused_or_names_a_caller_within_bounds() {
    replay("jwt", targets::jwt::run);
}
