//! Logs that are made up: lines as `taskledger events import` takes them in. Ids are scattered like
//! random ones, but known, so that scenarios can ask for tasks without looking for them.

use std::io::{self, Write};

/// Tasks of the trees of which most of a log consists.
pub(crate) const TREE_TASKS: u64 = 10;
/// Users, each with as many flows.
pub(crate) const USERS: u64 = 1_000;
/// Names of tasks.
pub(crate) const NAMES: u64 = 1_000;
/// Trees and finished flows in a block of [`BLOCK_TASKS`] tasks: one task in fifty is completed.
const BLOCK_TREES: u64 = 49;
const BLOCK_FINISHED: u64 = 10;
/// Tasks of a block.
pub(crate) const BLOCK_TASKS: u64 = BLOCK_TREES * TREE_TASKS + BLOCK_FINISHED;
/// Events of a block: a finished flow has five.
const BLOCK_EVENTS: u64 = BLOCK_TREES * TREE_TASKS + BLOCK_FINISHED * 5;

/// Events of a log of so many tasks.
pub(crate) const fn events_of(tasks: u64) -> u64 {
    tasks / BLOCK_TASKS * BLOCK_EVENTS
}

/// The id of a task: its flow's number in the log, from 0, and its place in the flow. The root is 0.
pub(crate) fn task_id(flow: u64, ordinal: u64) -> String {
    uuid(1, flow << 20 | ordinal)
}

/// A log that is being written.
pub(crate) struct Log<'w> {
    out: &'w mut dyn Write,
    position: u64,
    flows: u64,
}

impl<'w> Log<'w> {
    pub(crate) fn new(out: &'w mut dyn Write) -> Self {
        Self {
            out,
            position: 0,
            flows: 0,
        }
    }

    /// So many tasks, in whole blocks: small trees that were only stored, and some finished flows.
    pub(crate) fn blocks(&mut self, tasks: u64) -> io::Result<()> {
        for _ in 0..tasks / BLOCK_TASKS {
            for _ in 0..BLOCK_TREES {
                self.tree(TREE_TASKS)?;
            }
            for _ in 0..BLOCK_FINISHED {
                self.finished()?;
            }
        }
        Ok(())
    }

    /// A group and tasks below it, of which none was executed; gives the number of the flow.
    pub(crate) fn tree(&mut self, tasks: u64) -> io::Result<u64> {
        let flow = self.flows;
        self.created(flow, 0, None)?;
        for ordinal in 1..tasks {
            self.created(flow, ordinal, Some(0))?;
        }
        self.flows += 1;
        Ok(flow)
    }

    /// One task that was executed.
    fn finished(&mut self) -> io::Result<()> {
        let (flow, task) = (self.flows, task_id(self.flows, 0));
        let run = uuid(2, flow);
        self.created(flow, 0, Some(0))?;
        let started = format!(
            r#"{{"run_id":"{run}","task_id":"{task}","kind":"execute","covers":[[0,0]],"allow_unknown_executors":false,"executor_wait_ms":0}}"#
        );
        self.event(flow, 2, "RunStarted", 2, &started)?;
        let attempt = format!(r#"{{"task_id":"{task}","attempt":1,"run_id":"{run}"}}"#);
        self.event(flow, 3, "TaskStarted", 1, &attempt)?;
        let completed = format!(
            r#"{{"task_id":"{task}","attempt":1,"result":{{"url":"https://example.com","timeout":60}}}}"#
        );
        self.event(flow, 4, "TaskCompleted", 1, &completed)?;
        let ended = format!(
            r#"{{"run_id":"{run}","task_id":"{task}","state":"completed","counts":{{"pending":0,"in_progress":0,"completed":1,"failed":0,"cancelled":0}},"root":{{"status":"completed","progress":1.0}}}}"#
        );
        self.event(flow, 5, "RunEnded", 2, &ended)?;
        self.flows += 1;
        Ok(())
    }

    /// A task that is stored: with an executor if `below` is given, which names its parent unless it is
    /// the root; else a group.
    fn created(&mut self, flow: u64, ordinal: u64, below: Option<u64>) -> io::Result<()> {
        let parent = match ordinal {
            0 => String::new(),
            _ => format!(
                r#""parent_id":"{}","#,
                task_id(flow, below.unwrap_or_default())
            ),
        };
        let specification = match below {
            Some(_) => {
                r#"{"inputs":{"url":"https://example.com","timeout":60},"schemas":{"method":"echo_executor"},"method":"echo_executor"}"#
            }
            None => r#"{"inputs":{}}"#,
        };
        let data = format!(
            r#"{{"task_id":"{}","ordinal":{ordinal},{parent}"name":"Task {}","user_id":"user-{}","priority":{},"specification":{specification}}}"#,
            task_id(flow, ordinal),
            scatter(flow << 20 | ordinal) % NAMES,
            flow % USERS,
            scatter(flow << 20 | ordinal) / NAMES % 4,
        );
        self.event(flow, ordinal + 1, "TaskCreated", 1, &data)
    }

    fn event(
        &mut self,
        flow: u64,
        version: u64,
        kind: &str,
        schema_version: u16,
        data: &str,
    ) -> io::Result<()> {
        self.position += 1;
        let position = self.position;
        // A millisecond each, within one day.
        let (seconds, ms) = (position / 1_000, position % 1_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let time = format!("2026-01-01T{hour:02}:{minute:02}:{second:02}.{ms:03}000Z");
        writeln!(
            self.out,
            r#"{{"position":{position},"flow_id":"{}","version":{version},"event_id":"{}","time":"{time}","recorded_at":"{time}","kind":"{kind}","schema_version":{schema_version},"actor":"anonymous","correlation":"{}","causation":null,"trace":null,"data":{data}}}"#,
            task_id(flow, 0),
            uuid(3, position),
            uuid(4, position),
        )
    }
}

/// An id that looks random; different for all pairs.
fn uuid(space: u64, number: u64) -> String {
    let (high, low) = (
        scatter(number ^ space << 60),
        scatter(!number ^ space << 60),
    );
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0xfff,
        low & 0xffff_ffff_ffff
    )
}

/// The finalizer of SplitMix64: different for different numbers.
fn scatter(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_TASKS, Log, events_of, task_id};
    use serde_json::Value;
    use std::collections::HashSet;

    #[test]
    fn a_log_has_as_many_events_and_tasks_as_it_says_and_every_line_is_json() {
        let mut text = Vec::new();
        Log::new(&mut text).blocks(2 * BLOCK_TASKS).expect("memory");
        let lines: Vec<Value> = String::from_utf8(text)
            .expect("text")
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(lines.len() as u64, events_of(2 * BLOCK_TASKS));
        let created = lines.iter().filter(|line| line["kind"] == "TaskCreated");
        let ids: HashSet<&str> = created
            .filter_map(|line| line["data"]["task_id"].as_str())
            .collect();
        assert_eq!(ids.len() as u64, 2 * BLOCK_TASKS);
        assert!(ids.contains(task_id(48, 9).as_str()));
        assert!(ids.contains(task_id(58, 0).as_str()));
    }
}
