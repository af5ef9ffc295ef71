//! The summary of rules at the end of the document. spec: data-model / Validation Rules

use super::configuration::inputs_conform;
use super::dependencies::{
    cycles_are_refused, dependency_ids_are_checked, missing_dependencies_are_refused,
    other_flows_are_refused, self_dependencies_are_refused,
};
use super::fields::{
    broken_tasks_are_refused, names_are_bounded, priorities_are_integers, statuses_are_known,
    task_ids_are_checked,
};
use super::identity::{data_conforms, given_ids_are_checked, parent_ids_are_checked};
use super::trees::{missing_parents_are_refused, one_root_is_demanded, parent_cycles_are_refused};
use crate::clauses::prelude::*;
use crate::clauses::validation::members_agree_with_status;

pub(super) fn clauses() -> Vec<Clause> {
    let mut clauses = vec![
        must(
            "data-model/rules/1-required",
            "create and update see to it that a task has `id`, `name` and `status`",
            required_members_are_checked,
        ),
        must(
            "data-model/rules/2-types",
            "create and update check the types of all members",
            broken_tasks_are_refused,
        )
        .same_as(&["data-model/json-schema/2-properties"]),
        must(
            "data-model/rules/3-constraints",
            "create and update check ranges and lengths",
            constraints_are_checked,
        ),
        must(
            "data-model/rules/4-uuids",
            "ids, parents and dependencies are UUIDs",
            uuids_are_checked,
        ),
        must(
            "data-model/rules/5-status-consistency",
            "status and members agree: no `result` before completion, for example",
            members_agree_with_status,
        )
        .same_as(&["validation/consistency/1-by-status"]),
        must(
            "data-model/rules/6-references",
            "all dependencies name tasks that exist",
            missing_dependencies_are_refused,
        )
        .same_as(&["validation/references/1-exist"]),
        must(
            "data-model/rules/7-cycles",
            "there are no circular chains of dependencies",
            cycles_are_refused,
        )
        .same_as(&["data-model/dependency-rules/3-cycle"]),
        must(
            "data-model/rules/8-inputs",
            "`inputs` conform to `schemas.input_schema`",
            inputs_conform,
        )
        .same_as(&["data-model/inputs/2-conform"]),
    ];
    clauses.extend(dependencies());
    clauses.extend(trees());
    clauses
}

fn dependencies() -> Vec<Clause> {
    vec![
        must(
            "data-model/rules-dependencies/1-references",
            "all dependencies name tasks that exist",
            missing_dependencies_are_refused,
        )
        .same_as(&["data-model/rules/6-references"]),
        must_not(
            "data-model/rules-dependencies/2-self",
            "a task does not depend on itself",
            self_dependencies_are_refused,
        )
        .same_as(&["data-model/dependency-rules/2-self"]),
        must(
            "data-model/rules-dependencies/3-cycles",
            "the algorithm's answer on cycles, of any length, is the server's",
            cycles_are_refused,
        )
        .same_as(&["validation/cycles/2-detected"]),
    ]
}

fn trees() -> Vec<Clause> {
    vec![
        must(
            "data-model/rules-tree/1-root",
            "exactly one task of a tree has no parent",
            one_root_is_demanded,
        )
        .same_as(&["validation/root/1-exactly-one"]),
        must(
            "data-model/rules-tree/2-parents",
            "all parents are tasks of the tree",
            missing_parents_are_refused,
        )
        .same_as(&["validation/parents/1-exist"]),
        must(
            "data-model/rules-tree/3-acyclic",
            "parents form no cycle",
            parent_cycles_are_refused,
        )
        .same_as(&["data-model/tree/3-acyclic"]),
        must(
            "data-model/rules-tree/4-dependencies",
            "all dependencies are tasks of the tree",
            other_flows_are_refused,
        ),
    ]
}

/// Whatever is stored has the three; a caller cannot say that it has none, or a faulty one.
async fn required_members_are_checked(probe: &Probe) -> Outcome {
    data_conforms(probe).await?;
    names_are_bounded(probe).await?;
    statuses_are_known(probe).await?;
    given_ids_are_checked(probe).await?;
    seen("stored tasks have the three; no name, and faulty names, statuses and ids come to nothing")
}

async fn constraints_are_checked(probe: &Probe) -> Outcome {
    priorities_are_integers(probe).await?;
    names_are_bounded(probe).await
}

pub(in super::super) async fn uuids_are_checked(probe: &Probe) -> Outcome {
    parent_ids_are_checked(probe).await?;
    dependency_ids_are_checked(probe).await?;
    given_ids_are_checked(probe).await?;
    task_ids_are_checked(probe).await?;
    seen("parents, dependencies, own ids and ids of calls: what is no UUID v4 comes to nothing")
}
