//! The bounds of the rules, with unit and reason. Bounds of queues, sockets and answers stand beside
//! what they bound.

/// Levels of a task tree, the root being level 1. Two JSON levels each, so that parsers with the
/// common depth limit of 128 can read a tree.
pub const TREE_DEPTH_MAX: usize = 60;
/// Bytes of an HTTP request body.
pub const REQUEST_BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Milliseconds by which a called server delays the next attempt with `Retry-After`: a day.
pub const RETRY_AFTER_MS_MAX: u64 = 24 * 3_600 * 1_000;
/// Calls in one JSON-RPC batch.
pub const BATCH_CALLS_MAX: usize = 100;
/// Tasks in one `tasks.create` or `tasks.execute`.
pub const TASKS_PER_CALL_MAX: usize = 20_000;
/// Dependencies of one task.
pub const DEPENDENCIES_PER_TASK_MAX: usize = 20_000;
/// Tasks in one flow, deleted ones included: the size for which the resident state is designed.
pub const TASKS_PER_FLOW_MAX: usize = 100_000;
/// Bytes of JSON text of `inputs`, of `schemas`, of `params` and of `result`, each.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// JSON levels of `inputs`, of `schemas`, of `params` and of `result`, each: readers commonly stop
/// at 128, and these are read inside of a task and an answer.
pub const PAYLOAD_DEPTH_MAX: usize = 100;
/// Unicode scalar values in a task's name. spec: data-model / name
pub const NAME_CHARS_MAX: usize = 255;
/// Unicode scalar values in a `user_id`, an executor's name or an alias.
pub const KEY_CHARS_MAX: usize = 255;
/// Labels of one task.
pub const LABELS_MAX: usize = 32;
/// Characters in the key of a label, its prefix included.
pub const LABEL_KEY_CHARS_MAX: usize = 63;
/// Unicode scalar values in the value of a label.
pub const LABEL_VALUE_CHARS_MAX: usize = 255;
/// Inputs of a task that are wired to results.
pub const WIRED_INPUTS_MAX: usize = 256;
/// Templates in the texts of the inputs of a task.
pub const TEMPLATES_MAX: usize = 256;
/// Unicode scalar values in one reference to a result.
pub const REFERENCE_CHARS_MAX: usize = 1024;
/// Refused results of one attempt that are recorded; further ones are refused all the same.
pub const REJECTIONS_PER_ATTEMPT_MAX: u32 = 100;
/// Keys that a task may declare in `schemas.outputs`.
pub const OUTPUTS_MAX: usize = 256;
/// Names in `schemas.types`.
pub const TYPES_MAX: usize = 256;
/// Unicode scalar values in one type expression.
pub const TYPE_CHARS_MAX: usize = 4096;
/// Levels of one type, and of types that are other names for each other: readers recurse over them.
pub const TYPE_DEPTH_MAX: usize = 64;
/// Types within types, in all that one task declares: what it declares is kept compiled.
pub const TYPE_NODES_MAX: usize = 10_000;
/// JSON Schemas in the types of one task: each may take tens of milliseconds to compile.
pub const TYPE_SCHEMAS_MAX: usize = 16;
/// Steps (about 15 ns each) that compiling the JSON Schemas in the types of all tasks of one call may take: a second
/// and a half of one thread.
pub const TYPE_SCHEMA_STEPS_PER_CALL_MAX: u64 = 100_000_000;
/// Steps that are charged for a JSON Schema that is refused: listing its faults takes a few milliseconds.
pub const REFUSED_SCHEMA_STEPS: u64 = 100_000;
/// Values in one `enum` of a type: those that are no texts are compared one by one.
pub const ENUM_VALUES_MAX: usize = 1_000;
/// Steps (about 10 ns each) that a check of an output against its types may take.
pub const OUTPUT_CHECK_STEPS_MAX: u64 = 5_000_000;
/// Steps (about 10 ns each) that all checks of wired inputs of one attempt against their types may take.
pub const INPUT_CHECK_STEPS_MAX: u64 = 5_000_000;
/// Steps (about 10 ns each) that the checks of all defaults in the types of one task may take: a call may create
/// thousands of tasks.
pub const DEFAULT_CHECK_STEPS_MAX: u64 = 20_000;
/// Steps (about 100 ns each) that a comparison of two types may take.
pub const TYPE_COMPARISON_STEPS_MAX: u64 = 100_000;
/// Suspensions of a task in one run.
pub const SUSPENSIONS_PER_RUN_MAX: usize = 100;
/// Bytes of a question with everything that belongs to it: it is kept with each task that waits.
pub const QUESTION_BYTES_MAX: usize = 64 * 1024;
/// Bytes of JSON of an answer: each later attempt of the task gets all of them.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Unicode scalar values in the text of a question.
pub const QUESTION_CHARS_MAX: usize = 4000;
/// Unicode scalar values in a text that says where a person may be found.
pub const HINT_CHARS_MAX: usize = 255;
/// Values that a question may offer.
pub const CHOICES_MAX: usize = 100;
/// Choices that a refusal lists.
pub const SUGGESTED_CHOICES_MAX: usize = 20;
/// Unicode scalar values in the context of a run.
pub const CONTEXT_CHARS_MAX: usize = 255;
/// Unicode scalar values in what a caller calls a message.
pub const MESSAGE_ID_CHARS_MAX: usize = 255;
/// Bytes of JSON of a message to a run: every history of the run shows it.
pub const RUN_MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Messages to one run behind the one that began it.
pub const MESSAGES_PER_RUN_MAX: usize = 1000;
/// Runs that a message may name.
pub const REFERENCES_MAX: usize = 100;
/// How often a question is asked.
pub const REMINDERS_MAX: u32 = 100;
/// Bytes of an error text that is recorded; longer ones are cut.
pub const ERROR_BYTES_MAX: usize = 16 * 1024;
/// Violations reported in one answer; the rest is counted.
pub const VIOLATIONS_MAX: usize = 100;
/// Extra attempts that a task may ask for.
pub const RETRIES_MAX: u32 = 100;
/// Milliseconds between two attempts, and of an attempt (`timeout_seconds`): 30 days.
pub const DELAY_MS_MAX: u64 = 30 * 24 * 3600 * 1000;
/// Milliseconds that a task may wait for its start (`delay_seconds`): 365 days.
pub const START_DELAY_MS_MAX: u64 = 365 * 24 * 3600 * 1000;
/// Codes in a list of those after which no attempt follows.
pub const RETRY_CODES_MAX: usize = 256;
/// The highest exit code of a program.
pub const EXIT_CODE_MAX: u16 = 255;
/// The lowest status of an HTTP answer that is no success.
pub const STATUS_MIN: u16 = 300;
/// The highest status of an HTTP answer.
pub const STATUS_MAX: u16 = 599;
/// Milliseconds that a worker may be given to stop after a cancel: an hour.
pub const CANCEL_GRACE_MS_MAX: u64 = 3600 * 1000;
/// Milliseconds that a worker has to stop after a cancel, unless its task says otherwise.
pub const CANCEL_GRACE_MS_DEFAULT: u64 = 30_000;
/// Unicode scalar values in what a worker says of its progress.
pub const MESSAGE_CHARS_MAX: usize = 1000;
/// Bytes of JSON of what a worker says beside its progress or its outcome, each: it may be said every second.
pub const REMARK_BYTES_MAX: usize = 256 * 1024;
/// Bytes of JSON text of one part of the output of an attempt: each is an event, and is told to all who follow it.
pub const OUTPUT_PART_BYTES_MAX: usize = 64 * 1024;
/// Parts of the output of one attempt: whoever reads the task as it is reads all of them.
pub const OUTPUT_PARTS_MAX: u32 = 1000;
/// Bytes of JSON text of all parts of the output of one attempt: as many as a result may have.
pub const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// Attempts that one claim begins.
pub const CLAIMS_MAX: usize = 100;
/// Leases of a task that have ended and are remembered, the latest ones: a worker that repeats an outcome gets the
/// first answer, one whose lease was lost is told so. Workers repeat what got no answer for a minute, within which few
/// tasks begin as many attempts.
pub const ENDED_LEASES_PER_TASK_MAX: usize = 16;
/// Interruptions of a task, by restarts or by workers that were lost, after which the next one fails it, per run.
pub const INTERRUPTIONS_PER_RUN_MAX: u8 = 3;
/// Milliseconds for which a task rests whose worker was lost; twice as long after each further interruption.
pub const LOST_REST_MS: u64 = 1_000;
/// Milliseconds that a task waits for an unknown executor when the caller allows unknown ones.
pub const EXECUTOR_WAIT_MS_DEFAULT: u64 = 300_000;
/// Tasks that the answer to a call that begins a run lists: enough to read, and a few kilobytes.
pub const WILL_RUN_LISTED_MAX: usize = 100;
/// Tasks in one page of `tasks.list`. spec: interface / tasks.list
pub const LIST_LIMIT_MAX: u32 = 1000;
/// Tasks in one page of `tasks.list` when the caller gives no limit. spec: interface / tasks.list
pub const LIST_LIMIT_DEFAULT: u32 = 100;

/// The beginning of `text`, at most `bytes_max` bytes, ending at a character's end.
#[must_use]
pub fn cut(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let mut end = bytes_max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
