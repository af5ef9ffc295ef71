//! The workflow in `examples/` does what its README says, step by step, with the real programs.
//! (That a server runs it as a whole is another test's claim.)

#![expect(clippy::unwrap_used, reason = "everything in this file is a test")]

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use taskledger::engine::executor::{
    AttemptOutcome, BuiltInOptions, DependencyOutcome, Job, Notes, Output, Past, ProgressReporter,
    Registry, TimeLimits, command, run_attempt, with_built_ins,
};
use taskledger::engine::secrets::SecretTexts;
use taskledger_domain::task::Status;
use taskledger_domain::task::inputs;
use taskledger_domain::{FlowId, RunId, TaskId};
use tokio_util::sync::CancellationToken;

const WORKFLOW: &str = include_str!("../../examples/real_workflow.json");
const README: &str = include_str!("../../examples/README.md");

fn tasks() -> Vec<Value> {
    let request: Value = serde_json::from_str(WORKFLOW).unwrap();
    request["tasks"].as_array().unwrap().clone()
}

fn text<'a>(task: &'a Value, member: &str) -> &'a str {
    task[member].as_str().unwrap()
}

fn dependencies(task: &Value) -> Vec<(String, bool)> {
    task["dependencies"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|d| (text(d, "id").to_owned(), d["required"] != json!(false)))
        .collect()
}

/// The programs that the README says must be allowed.
fn programs() -> BTreeSet<&'static str> {
    let block = README.split("```\n").nth(2).unwrap();
    block.split_whitespace().collect()
}

#[test]
fn the_readme_names_exactly_the_programs_that_are_used() {
    let used: BTreeSet<_> = tasks()
        .iter()
        .filter_map(|task| Some(task["inputs"]["program"].as_str()?.to_owned()))
        .collect();
    let told: BTreeSet<_> = programs().into_iter().map(str::to_owned).collect();
    assert_eq!(used, told);
}

#[test]
fn references_lead_to_earlier_tasks_and_there_is_one_root() {
    let mut known = BTreeSet::new();
    let mut roots = 0;
    for task in tasks() {
        match task.get("parent_id") {
            Some(parent) => assert!(known.contains(parent.as_str().unwrap()), "{task}"),
            None => roots += 1,
        }
        for (id, _) in dependencies(&task) {
            assert!(known.contains(&id), "{task}");
        }
        assert!(known.insert(text(&task, "id").to_owned()), "{task}");
    }
    assert_eq!((roots, known.len()), (1, 36));
}

fn registry(root: &Path) -> Registry {
    let mut command = command::Options::allowing(programs());
    command.root = Some(root.to_owned());
    let options = BuiltInOptions {
        disk_path: None,
        command: Some(command),
        egress: None,
    };
    with_built_ins(Registry::builder(), options)
        .unwrap()
        .build()
        .unwrap()
}

fn task_id(number: usize) -> TaskId {
    TaskId::parse(&format!("00000000-0000-4000-8000-{number:012}")).unwrap()
}

/// Runs all steps one after the other, as their order allows; groups are skipped.
async fn run_steps(registry: &Registry) -> BTreeMap<String, DependencyOutcome> {
    let mut ended: BTreeMap<String, DependencyOutcome> = BTreeMap::new();
    for (number, task) in tasks().iter().enumerate() {
        let Some(method) = task["schemas"]["method"].as_str() else {
            continue;
        };
        let executor = registry.get(method).unwrap();
        let inputs = task["inputs"].clone();
        assert_eq!(executor.check_inputs(&inputs), Ok(()), "{task}");
        if let Some(schema) = task["schemas"].get("input_schema") {
            assert_eq!(inputs::compile(schema).unwrap().check(&inputs), Ok(()));
        }
        let waited_for = dependencies(task);
        for (id, required) in &waited_for {
            let status = ended[id].status;
            assert!(!required || status == Status::Completed, "{id} of {task}");
        }
        let job = Job {
            flow_id: task_id(0).as_flow(),
            run_id: RunId(FlowId::root(task_id(0).as_flow()).0),
            task_id: task_id(number),
            attempt: 1,
            name: text(task, "name").into(),
            inputs: inputs.as_object().unwrap().clone(),
            params: Map::new(),
            schemas: Map::new(),
            dependencies: waited_for.iter().map(|(id, _)| ended[id].clone()).collect(),
            ends_at: None,
            cancel: CancellationToken::new(),
            over: CancellationToken::new(),
            progress: ProgressReporter::new().0,
            past: Past::default(),
            notes: Notes::default(),
            output: Output::default(),
            traceparent: None,
            secrets: SecretTexts::default(),
        };
        let outcome = run_attempt(executor, job, TimeLimits::default()).await;
        let (status, result, error) = match outcome {
            AttemptOutcome::Completed(result) => (Status::Completed, Some(result.to_map()), None),
            AttemptOutcome::Failed { error, .. } => (Status::Failed, None, Some(error)),
            AttemptOutcome::Breached { breach, .. } => {
                (Status::Failed, None, Some(breach.failure()))
            }
            AttemptOutcome::Asked(_) | AttemptOutcome::Stopped => panic!("it asks nobody"),
        };
        ended.insert(
            text(task, "id").to_owned(),
            DependencyOutcome {
                id: task_id(number),
                name: text(task, "name").to_owned(),
                status,
                result,
                error,
            },
        );
    }
    ended
}

#[tokio::test]
async fn every_step_does_its_work_and_only_the_optional_one_fails() {
    let place = tempfile::tempdir().unwrap();
    let registry = registry(place.path());
    for run in ["first", "again over the files of the first"] {
        let ended = run_steps(&registry).await;
        let failed: Vec<_> = ended
            .iter()
            .filter(|(_, outcome)| outcome.status != Status::Completed)
            .collect();
        assert_eq!(failed.len(), 1, "{run}: {failed:?}");
        assert_eq!(failed[0].0, "words-extra");

        let result = |id: &str| Value::Object(ended[id].result.clone().unwrap());
        assert!(result("words-gpl")["json"]["words"].as_u64().unwrap() > 5000);
        let parts: Vec<_> = (0..4)
            .map(|i| result(&format!("sum-{i}"))["json"].clone())
            .collect();
        let total =
            |member: &str| -> u64 { parts.iter().map(|p| p[member].as_u64().unwrap()).sum() };
        assert_eq!(total("numbers"), 200_000);
        assert_eq!(total("sum"), 200_000 * 200_001 / 2);
        assert_eq!(
            result("top")["stdout"].as_str().unwrap().lines().count(),
            10
        );
        let summary = result("summary");
        assert_eq!(summary["counts"]["failed"], 1);
        assert_eq!(summary["counts"]["total"], dependencies_of("summary"));
        let checked = result("verify-checksum");
        assert_eq!(checked["stdout"], "verify/out/sorted.txt: OK\n");
    }
}

fn dependencies_of(id: &str) -> usize {
    let task = tasks().into_iter().find(|task| text(task, "id") == id);
    dependencies(&task.unwrap()).len()
}
