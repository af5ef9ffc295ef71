//! Words in events, which keep their texts.

use taskledger_domain::flow::*;

#[test]
fn every_name_in_an_event_keeps_its_text() {
    let texts =
        |values: &[&dyn erased::Text]| -> Vec<String> { values.iter().map(|v| v.text()).collect() };
    use CancelReason as C;
    use FailureReason as F;
    use RequeueReason as R;
    assert_eq!(
        texts(&[
            &F::Executor,
            &F::Timeout,
            &F::Deadline,
            &F::ExecutorNotFound,
            &F::Interrupted,
            &F::InvalidInputs,
            &F::InvalidResult,
            &F::Group,
            &F::Released,
            &F::NotRetryable,
            &F::NotStarted,
            &F::Unanswered,
            &F::Declined,
            &F::Rejected,
        ]),
        [
            "executor",
            "timeout",
            "deadline",
            "executor_not_found",
            "interrupted",
            "invalid_inputs",
            "invalid_result",
            "group",
            "released",
            "not_retryable",
            "not_started",
            "unanswered",
            "declined",
            "rejected",
        ]
        .map(quoted)
    );
    let requeued = texts(&[
        &R::Retry,
        &R::Rerun,
        &R::Interrupted,
        &R::Released,
        &R::Answered,
    ]);
    assert_eq!(
        requeued,
        ["retry", "rerun", "interrupted", "released", "answered"].map(quoted)
    );
    assert_eq!(
        texts(&[&C::Requested, &C::Deadline]),
        ["requested", "deadline"].map(quoted)
    );
    let states = [
        RunState::Running,
        RunState::Completed,
        RunState::Failed,
        RunState::Cancelled,
    ];
    let states = states.map(|s| erased::Text::text(&s));
    assert_eq!(
        states,
        ["running", "completed", "failed", "cancelled"].map(quoted)
    );
    let kinds = [RunKind::Execute, RunKind::Retry].map(|k| erased::Text::text(&k));
    assert_eq!(kinds, ["execute", "retry"].map(quoted));
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

mod erased {
    /// The JSON of a value.
    pub(crate) trait Text {
        fn text(&self) -> String;
    }
    impl<T: serde::Serialize> Text for T {
        fn text(&self) -> String {
            serde_json::to_string(self).expect("JSON")
        }
    }
}
