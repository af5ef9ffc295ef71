//! Tasks and trees, and what their members may be. spec: data-model

mod configuration;
mod dependencies;
mod executors;
mod fields;
mod identity;
mod outcomes;
mod relations;
mod rules;
mod times;
mod trees;
mod waiting;

use super::prelude::*;

pub(super) use configuration::{inputs_conform, unknown_methods_never_complete};
pub(super) use dependencies::{
    cycles_are_refused, missing_dependencies_are_refused, self_dependencies_are_refused,
};
pub(super) use fields::{
    broken_tasks_are_refused, names_are_bounded, priorities_are_integers, progress_is_a_fraction,
    schemas_are_objects, statuses_are_known, task_ids_are_checked,
};
pub(super) use identity::{
    data_conforms, given_ids_are_checked, ids_are_unique_uuids, parent_ids_are_checked,
    urgent_tasks_start_first,
};
pub(super) use outcomes::{
    completed_tasks_have_results, errors_are_texts, progress_stays_in_range,
};
pub(super) use rules::uuids_are_checked;
pub(super) use times::{
    completed_at_only_at_the_end, started_at_only_after_the_start, times_are_checked,
    times_are_in_utc,
};
pub(super) use trees::{
    missing_parents_are_refused, nodes_have_tasks_and_children, one_root_is_demanded,
    parent_cycles_are_refused, trees_have_whole_tasks,
};
pub(super) use waiting::{
    cancelled_is_an_end_for_optional, failed_required_blocks, optional_waits_and_goes_on,
    required_waits_for_completion,
};

/// The clauses of this document.
pub(super) fn clauses() -> Vec<Clause> {
    let parts = [
        identity::clauses(),
        fields::clauses(),
        outcomes::clauses(),
        times::clauses(),
        relations::clauses(),
        fields::schema(),
        configuration::clauses(),
        dependencies::clauses(),
        waiting::clauses(),
        trees::clauses(),
        outcomes::formats(),
        executors::clauses(),
        rules::clauses(),
    ];
    parts.into_iter().flatten().collect()
}
