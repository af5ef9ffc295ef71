//! Lineage: which task, attempt and event each input value of an attempt came from. Nothing of it is stored: it follows
//! from the specification and the results that were there when an attempt began (decision 0082).

use super::App;
use super::api::work::Begun;
use super::api::{Lineage, Origin};
use super::error::Error;
use super::facts;
use super::sending::engine_metadata;
use super::stream_reader::StreamReader;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use taskledger_domain::flow::{Event, Flow, Specification};
use taskledger_domain::schedule::LEASED_RESULTS_MAX;
use taskledger_domain::task::Status;
use taskledger_domain::task::wiring::{self, AttemptIds, Use, Wiring};
use taskledger_domain::{FlowId, Payload, Recorded, TaskId, Version};

/// Values of one answer whose origin is told; attempts beyond it are told without.
const ORIGINS_MAX: usize = 5_000;
/// Bytes of specifications, and of results, that are read for one answer.
const READ_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of inputs that one answer tells; attempts beyond it are told without.
const INPUT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Events that are read before their bytes are counted.
const CHUNK_EVENTS: usize = 16;
/// Events that are looked through for starts, and for specifications that have been replaced.
const SCANNED_MAX: usize = 20_000;
/// Bytes of them.
const SCANNED_BYTES_MAX: usize = 4 * READ_BYTES_MAX;

/// The start of an attempt: its task, and the version of the event.
pub(super) type Start = (TaskId, Version);

/// An attempt some of whose inputs are not literal.
struct Wired {
    start: Start,
    uses: Vec<Use>,
    /// Its specification, when all that it worked on is to be told.
    whole: Option<(Wiring, Payload)>,
}

/// How the tasks stand whose results are named.
#[derive(Default)]
struct Sources {
    /// Those that have completed, by the version of the event with the result.
    completed: BTreeMap<Version, TaskId>,
    /// Since which version they stand as they do; absent for those that are not at their end.
    ended: HashMap<TaskId, Version>,
    /// Those that are there.
    known: BTreeSet<TaskId>,
}

impl Sources {
    /// Whether the result that a task has now, or has not, is the one that an attempt found.
    fn are_as_at(&self, (task, (_, start)): (TaskId, Start)) -> bool {
        let ended = self.ended.get(&task);
        !self.known.contains(&task) || ended.is_some_and(|at| *at <= start)
    }
}

impl App {
    /// The origins of values for each of these attempts of a flow, in the order of the inputs; nothing for attempts
    /// whose inputs are literal, and for those beyond [`ORIGINS_MAX`], [`READ_BYTES_MAX`] and [`SCANNED_MAX`]. Values
    /// that were not there, or are defaults, have no origin. With them, what the attempts worked on, up to
    /// [`INPUT_BYTES_MAX`]. Cost: O(specifications, and results that they name), read piece by piece.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) async fn lineages(
        &self,
        flow: FlowId,
        starts: Vec<Start>,
    ) -> Result<HashMap<Start, Lineage>, Error> {
        if starts.is_empty() {
            return Ok(HashMap::new());
        }
        let reader = StreamReader::of(&*self.store, flow);
        let wired = self.wired_attempts(flow, starts, reader).await?;
        if wired.is_empty() {
            return Ok(HashMap::new());
        }
        let sources = wired.iter().flat_map(|wired| &wired.uses);
        let sources: BTreeSet<TaskId> = sources.filter_map(Use::source).collect();
        let look = move |state: &Flow| {
            let mut found = Sources::default();
            for task in sources.iter().filter_map(|id| state.task(*id)) {
                found.known.insert(task.id);
                match task.status {
                    Status::Pending | Status::InProgress => continue,
                    Status::Completed => {
                        found.completed.insert(task.outcome_at, task.id);
                    }
                    Status::Failed | Status::Cancelled => {}
                }
                found.ended.insert(task.id, task.outcome_at);
            }
            found
        };
        let look = self.flows.look_anywhere(flow, engine_metadata(), look);
        let sources = look.await?;
        lineages_of(reader, &wired, &sources).await
    }

    /// The same for the latest attempt of a task; `None` when it has not begun, too.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) async fn lineage_of_task(
        &self,
        flow: FlowId,
        task: TaskId,
    ) -> Result<Option<Lineage>, Error> {
        let look = move |state: &Flow| state.task(task).map(|it| (it.attempt, it.spec_at));
        let look = self.flows.look_anywhere(flow, engine_metadata(), look);
        match look.await? {
            Some((attempt, spec_at)) if attempt > 0 => {
                self.latest_lineage(flow, task, spec_at).await
            }
            Some(_) | None => Ok(None),
        }
    }

    /// The same for an attempt of a worker that has just begun, from what the owner of its flow told of it.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) async fn lineage_of_claim(
        &self,
        begun: &Begun,
        specification: &Specification,
    ) -> Result<Option<Vec<Origin>>, Error> {
        if !wiring::is_wired(specification) {
            return Ok(None);
        }
        let uses = Wiring::of(specification).uses(&specification.inputs);
        // Nothing rather than a part.
        if uses.len() > ORIGINS_MAX || begun.results.len() >= LEASED_RESULTS_MAX {
            return Ok(None);
        }
        // It has not begun before any of them.
        let start = (begun.task, Version::MAX);
        let sources: BTreeSet<TaskId> = uses.iter().filter_map(Use::source).collect();
        let results = begun.results.iter();
        let named = results.filter(|(task, _)| sources.contains(task));
        let sources = Sources {
            completed: named.map(|(task, version)| (*version, *task)).collect(),
            ..Sources::default()
        };
        let reader = StreamReader::of(&*self.store, begun.flow);
        let whole = None;
        let wired = [Wired { start, uses, whole }];
        let found = lineages_of(reader, &wired, &sources).await?.remove(&start);
        Ok(found.map(|found| found.origins))
    }

    /// The same for the latest attempt of a task, whose specification is that of this version now; `None` when its
    /// inputs were literal, or its start is too far back.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) async fn latest_lineage(
        &self,
        flow: FlowId,
        task: TaskId,
        spec_at: Version,
    ) -> Result<Option<Lineage>, Error> {
        let reader = StreamReader::of(&*self.store, flow);
        let mut is_wired = false;
        let learn = |recorded: &Recorded| {
            // One that was specified anew may have been wired when the attempt began.
            let is_first = matches!(&*recorded.event, Event::TaskCreated(_));
            let specification = facts::specification(&recorded.event);
            is_wired = !is_first || specification.is_some_and(wiring::is_wired);
        };
        reader.versions(&[spec_at], learn).await?;
        let Some((head, _)) = self.store.stream_head(flow).await?.filter(|_| is_wired) else {
            return Ok(None);
        };
        let is_start = |event: &Event| matches!(event, Event::TaskStarted(e) if e.task_id == task);
        let started = latest(reader, head + 1, &mut { SCANNED_MAX }, is_start).await?;
        let Some(start) = started.map(|at| (task, at)) else {
            return Ok(None);
        };
        let mut lineages = self.lineages(flow, vec![start]).await?;
        Ok(lineages.remove(&start))
    }

    /// Those of the attempts that take values from results.
    async fn wired_attempts(
        &self,
        flow: FlowId,
        starts: Vec<Start>,
        reader: StreamReader<'_>,
    ) -> Result<Vec<Wired>, Error> {
        let tasks: BTreeSet<TaskId> = starts.iter().map(|(task, _)| *task).collect();
        let look = move |state: &Flow| {
            let tasks = tasks.iter().filter_map(|id| state.task(*id));
            tasks
                .map(|it| (it.id, it.spec_at))
                .collect::<HashMap<_, _>>()
        };
        let newest = self
            .flows
            .look_anywhere(flow, engine_metadata(), look)
            .await?;
        let mut specified = BTreeMap::<Version, Vec<Start>>::new();
        let mut budget = SCANNED_MAX;
        for start @ (task, at) in starts {
            let Some(&spec_at) = newest.get(&task) else {
                continue;
            };
            let spec_at = if spec_at > at {
                let specifies = |event: &Event| {
                    facts::specification(event).is_some() && event.task_id() == Some(task)
                };
                latest(reader, at, &mut budget, specifies).await?
            } else {
                Some(spec_at)
            };
            if let Some(spec_at) = spec_at {
                specified.entry(spec_at).or_default().push(start);
            }
        }
        let (mut wired, mut origins) = (Vec::new(), 0);
        let learn = |recorded: &Recorded| {
            let Some(specification) = facts::specification(&recorded.event) else {
                return;
            };
            let wiring = Wiring::of(specification);
            if wiring.is_empty() {
                return;
            }
            let uses = wiring.uses(&specification.inputs);
            for start in specified.get(&recorded.version).into_iter().flatten() {
                origins += uses.len();
                if origins <= ORIGINS_MAX {
                    let whole = Some((wiring.clone(), specification.inputs.clone()));
                    let (start, uses) = (*start, uses.clone());
                    wired.push(Wired { start, uses, whole });
                }
            }
        };
        let versions: Vec<Version> = specified.keys().copied().collect();
        within_bytes(reader, &versions, learn).await?;
        Ok(wired)
    }
}

/// What these attempts worked on, of results that are in these events.
async fn lineages_of(
    reader: StreamReader<'_>,
    wired: &[Wired],
    sources: &Sources,
) -> Result<HashMap<Start, Lineage>, Error> {
    let Sources { completed, .. } = sources;
    let is_whole = wired.iter().any(|it| it.whole.is_some());
    let mut results = HashMap::new();
    let mut by_source = HashMap::<TaskId, Vec<(usize, usize)>>::new();
    for (k, wired) in wired.iter().enumerate() {
        for (n, it) in wired.uses.iter().enumerate() {
            let source = it.source().into_iter();
            source.for_each(|task| by_source.entry(task).or_default().push((k, n)));
        }
    }
    let mut found: Vec<BTreeMap<usize, Origin>> = vec![BTreeMap::new(); wired.len()];
    let learn = |recorded: &Recorded| {
        let Event::TaskCompleted(e) = recorded.event.as_ref() else {
            return;
        };
        let result = e.result.to_map();
        for &(k, n) in by_source.get(&e.task_id).into_iter().flatten() {
            let (it, start) = (&wired[k].uses[n], wired[k].start.1);
            if start < recorded.version || !it.is_in(&result) {
                continue;
            }
            let origin = Origin {
                input: it.input.clone(),
                reference: it.reference().to_owned(),
                task: e.task_id,
                attempt: e.attempt,
                event: recorded.id,
                sequence: recorded.version,
            };
            found[k].insert(n, origin);
        }
        if is_whole {
            results.insert(e.task_id, result);
        }
    };
    let versions: Vec<Version> = completed.keys().copied().collect();
    let read = within_bytes(reader, &versions, learn).await?;
    let attempts = attempts_of(reader, wired).await?;
    // Whoever needs a result that was not read is told nothing rather than a part.
    let unread = versions[read..].iter().map(|version| completed[version]);
    let unread = unread.flat_map(|task| by_source.get(&task).into_iter().flatten());
    let unknown: BTreeSet<usize> = unread.map(|(k, _)| *k).collect();
    let lineages = wired.iter().zip(found).enumerate();
    let lineages = lineages.filter(|(k, _)| !unknown.contains(k));
    let mut bytes_left = INPUT_BYTES_MAX;
    let lineages = lineages.map(|(_, (it, found))| {
        let attempt = attempts.get(&it.start).copied();
        let input = attempt.and_then(|attempt| input_of(it, attempt, sources, &results));
        let input = input.filter(|input| {
            let left = bytes_left.checked_sub(input.as_str().len());
            bytes_left = left.unwrap_or(bytes_left);
            left.is_some()
        });
        let origins = found.into_values().collect();
        (it.start, Lineage { origins, input })
    });
    Ok(lineages.collect())
}

/// The attempts of which all that they worked on is to be told.
async fn attempts_of(
    reader: StreamReader<'_>,
    wired: &[Wired],
) -> Result<HashMap<Start, AttemptIds>, Error> {
    let whole = wired.iter().filter(|it| it.whole.is_some());
    let mut versions: Vec<Version> = whole.map(|it| it.start.1).collect();
    versions.sort_unstable();
    let mut attempts = HashMap::new();
    let learn = |recorded: &Recorded| {
        if let Event::TaskStarted(e) = &*recorded.event {
            let attempt = AttemptIds {
                task: e.task_id,
                run: e.run_id,
                attempt: e.attempt,
            };
            attempts.insert((e.task_id, recorded.version), attempt);
        }
    };
    within_bytes(reader, &versions, learn).await?;
    Ok(attempts)
}

/// All that an attempt worked on, if what it found is still what is there.
fn input_of(
    wired: &Wired,
    attempt: AttemptIds,
    sources: &Sources,
    results: &HashMap<TaskId, Map<String, Value>>,
) -> Option<Payload> {
    let (wiring, literal) = wired.whole.as_ref()?;
    let mut named = wiring.sources();
    if !named.all(|task| sources.are_as_at((task, wired.start))) {
        return None;
    }
    wiring
        .inputs(literal, attempt, |task| results.get(&task))
        .ok()
}

/// Reads events until there are too many bytes; how many were read.
async fn within_bytes(
    reader: StreamReader<'_>,
    versions: &[Version],
    mut each: impl FnMut(&Recorded) + Send,
) -> Result<usize, Error> {
    let (mut bytes, mut read) = (0, 0);
    for chunk in versions.chunks(CHUNK_EVENTS) {
        if bytes > READ_BYTES_MAX {
            break;
        }
        let learn = |recorded: &Recorded| {
            bytes += facts::bytes(&recorded.event);
            each(recorded);
        };
        reader.versions(chunk, learn).await?;
        read += chunk.len();
    }
    Ok(read)
}

/// The newest event below a version that is wanted, if it is within the budget.
async fn latest(
    reader: StreamReader<'_>,
    mut before: Version,
    budget: &mut usize,
    is_wanted: impl Fn(&Event) -> bool,
) -> Result<Option<Version>, Error> {
    let mut bytes = 0;
    while *budget > 0 && bytes <= SCANNED_BYTES_MAX {
        let piece = reader.before(before, *budget).await?;
        bytes += piece
            .iter()
            .map(|recorded| facts::bytes(&recorded.event))
            .sum::<usize>();
        if let Some(found) = piece.iter().find(|recorded| is_wanted(&recorded.event)) {
            return Ok(Some(found.version));
        }
        let Some(oldest) = piece.last() else {
            return Ok(None);
        };
        before = oldest.version;
        *budget -= piece.len();
    }
    Ok(None)
}
