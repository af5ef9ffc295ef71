//! The bounds of a document, with unit and reason. Bounds of tasks are those of `taskledger_domain::limits`.

use taskledger_domain::limits;

/// Bytes of a document's text: that of the largest `inputs` of a task.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Levels of maps and lists, so that what a task carries of a document stays below the 100 levels of a payload.
pub const LEVELS_MAX: usize = 64;
/// Keys, scalars, maps and lists; what an alias stands for counts again at each alias.
pub const NODES_MAX: usize = 100_000;
/// Aliases.
pub const ALIASES_MAX: usize = 1_000;
/// Bytes of keys and scalars; what an alias stands for counts again at each alias.
pub const EXPANDED_BYTES_MAX: usize = 4 * DOCUMENT_BYTES_MAX;
/// Phases: with the root of the run as many tasks as one call creates.
pub const PHASES_MAX: usize = limits::TASKS_PER_CALL_MAX - 1;
/// Errors of one report, and as many warnings; one more says how many there are besides.
pub const FAULTS_MAX: usize = 1_000;
/// Entries of `Workflow::not_acted_on`.
pub const NOT_ACTED_ON_MAX: usize = 1_000;
/// Steps over skipped phases when what others wait for is looked for: below a second.
pub(crate) const SKIP_STEPS_MAX: usize = 10_000_000;
/// Dependencies of a run that go past skipped phases, in all.
pub(crate) const SKIP_EDGES_MAX: usize = NODES_MAX;
/// Differences of two versions that are told one by one.
pub const CHANGES_MAX: usize = 1_000;
/// Bytes of JSON that tasks of a run repeat, `types` and values of the trigger: the size of one request.
pub const REPEATED_BYTES_MAX: usize = limits::REQUEST_BODY_BYTES_MAX;
/// Bytes of JSON of all steps of a run that is played.
pub const PLAYED_BYTES_MAX: usize = limits::REQUEST_BODY_BYTES_MAX;
/// Bytes of a name in a path.
pub(crate) const NAME_BYTES_MAX: usize = 256;
/// Bytes of a path.
pub(crate) const PATH_BYTES_MAX: usize = 2048;
/// Bytes of a value that a message repeats.
pub(crate) const SHOWN_BYTES_MAX: usize = 80;
/// Products of lengths of names that are compared for all suggestions of a report: below a tenth of a second.
pub(crate) const COMPARISONS_MAX: usize = 10_000_000;
/// Steps (about 100 ns each) of all comparisons of types of a report; after that nothing more is compared.
pub(crate) const TYPE_STEPS_MAX: u64 = 1_000_000;
/// Steps (about 10 ns each) of all checks of values against types, of a report, and of a trigger.
pub(crate) const VALUE_STEPS_MAX: u64 = 20_000_000;
/// Bytes of JSON Schemas in `types` that tasks of a run repeat: as much as a document holds. Each is compiled again.
pub(crate) const REPEATED_SCHEMA_BYTES_MAX: usize = DOCUMENT_BYTES_MAX;
/// Bytes of the JSON Schemas of one answer, and of the types that are compiled for them.
pub const SCHEMAS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Phases that the message about a cycle names.
pub(crate) const CYCLE_NAMES_MAX: usize = 20;
