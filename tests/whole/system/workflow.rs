//! Workflows of the shapes that real ones have, made of tasks that sleep.

use serde_json::{Value, json};
use taskledger_testkit::random::Random;

/// Tasks in an order in which each comes after those that it waits for.
#[derive(Debug)]
pub(crate) struct Workflow {
    pub(crate) name: &'static str,
    pub(crate) tasks: Vec<Sleep>,
}

/// A task.
#[derive(Debug)]
pub(crate) struct Sleep {
    pub(crate) ms: u64,
    /// Indexes of tasks that it waits for.
    pub(crate) after: Vec<usize>,
}

impl Workflow {
    /// Each waits for the one before.
    pub(crate) fn chain(len: usize, ms: u64) -> Self {
        let tasks = (0..len).map(|i| Sleep {
            ms,
            after: i.checked_sub(1).into_iter().collect(),
        });
        Self {
            name: "chain",
            tasks: tasks.collect(),
        }
    }

    /// One, then `width` at once, then one that waits for all.
    pub(crate) fn fork_join(width: usize, ms: u64) -> Self {
        let mut tasks = vec![Sleep {
            ms,
            after: Vec::new(),
        }];
        tasks.extend((0..width).map(|_| Sleep { ms, after: vec![0] }));
        tasks.push(Sleep {
            ms,
            after: (1..=width).collect(),
        });
        Self {
            name: "fork-join",
            tasks,
        }
    }

    /// Levels in which each task waits for two neighbours of the level before.
    pub(crate) fn mesh(levels: usize, width: usize, random: &mut Random) -> Self {
        let mut tasks = Vec::new();
        for level in 0..levels {
            for place in 0..width {
                let ms = 60 + random.below(100);
                let above = |place: usize| (level - 1) * width + place % width;
                let after = if level == 0 {
                    Vec::new()
                } else {
                    vec![above(place), above(place + 1)]
                };
                tasks.push(Sleep { ms, after });
            }
        }
        Self {
            name: "mesh",
            tasks,
        }
    }

    /// Milliseconds of the longest path: no scheduler is faster.
    pub(crate) fn critical_path_ms(&self) -> u64 {
        let mut ends: Vec<u64> = Vec::with_capacity(self.tasks.len());
        for task in &self.tasks {
            let begin = task.after.iter().map(|&i| ends[i]).max().unwrap_or(0);
            ends.push(begin + task.ms);
        }
        ends.into_iter().max().unwrap_or(0)
    }

    /// Parameters of `tasks.execute`: a group with all tasks in it.
    pub(crate) fn request(&self) -> Value {
        let mut tasks = vec![json!({"id": "root", "name": self.name})];
        tasks.extend(self.tasks.iter().enumerate().map(|(i, task)| {
            let after: Vec<Value> = task
                .after
                .iter()
                .map(|d| json!({"id": format!("t{d}")}))
                .collect();
            json!({
                "id": format!("t{i}"), "parent_id": "root", "name": format!("task {i}"),
                "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": task.ms},
                "dependencies": after,
            })
        }));
        json!({ "tasks": tasks })
    }
}
