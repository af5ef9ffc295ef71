//! Counts of the model, made anew from its tasks.

use super::*;

pub fn count_mut(counts: &mut StatusCounts, status: Status) -> &mut u32 {
    match status {
        Status::Pending => &mut counts.pending,
        Status::InProgress => &mut counts.in_progress,
        Status::Completed => &mut counts.completed,
        Status::Failed => &mut counts.failed,
        Status::Cancelled => &mut counts.cancelled,
    }
}

/// The naive way: every figure of every group from its children, deepest first.
pub(super) fn recount(live: &mut BTreeMap<Position, TaskRow>) {
    let depth = |id: TaskId, live: &BTreeMap<Position, TaskRow>| {
        let mut n = 0;
        let mut next = Some(id);
        while let Some(id) = next {
            n += 1;
            next = live.values().find(|r| r.id == id).and_then(|r| r.parent_id);
        }
        n
    };
    let mut keys: Vec<(i32, Position)> = live
        .iter()
        .map(|(key, row)| (-depth(row.id, live), *key))
        .collect();
    keys.sort_unstable();
    for (_, key) in keys {
        let id = live[&key].id;
        let children: Vec<u64> = live
            .values()
            .filter(|r| r.parent_id == Some(id))
            .map(|r| u64::from(r.progress.millionths()))
            .collect();
        let row = live.get_mut(&key).unwrap();
        row.child_count = children.len() as u32;
        row.child_progress_sum = children.iter().sum();
        if row.is_group() && row.status == Status::InProgress {
            let mean = row
                .child_progress_sum
                .checked_div(children.len() as u64)
                .unwrap_or(0);
            row.progress = Progress::from_millionths(mean as u32);
        }
    }
}
