//! Agent2Agent in the matrix: how each operation names something, over every binding. An operation without its row does
//! not compile.

use super::world::Callers;
use crate::a2a::binding::{Binding, Refused, all_as};
use serde_json::{Value, json};
use taskledger::application::api::UseCase;
use taskledger_a2a::Operation;
use tokio::sync::oneshot;

/// Ids by which an operation may name something.
pub(super) struct Named<'o> {
    /// A flow that is stored, and a task of it.
    pub(super) root: &'o str,
    pub(super) child: &'o str,
    /// A run that is on, and the context that it has.
    pub(super) run: &'o str,
    pub(super) context: &'o str,
}

/// What asks for these use cases of runs.
pub(super) fn rows(case: UseCase, of: &Named<'_>) -> Vec<(Operation, Value)> {
    let all = Operation::ALL.into_iter().flat_map(|operation| {
        let rows = asked(operation, of).into_iter();
        rows.map(move |(case, request)| (operation, case, request))
    });
    let of_case = all.filter(|(_, it, _)| *it == case);
    of_case
        .map(|(operation, _, request)| (operation, request))
        .collect()
}

/// Every way in which an operation can name something, and for which use case.
fn asked(operation: Operation, of: &Named<'_>) -> Vec<(UseCase, Value)> {
    let (run, config) = (of.run, json!({"taskId": of.run, "id": "c"}));
    let message = |part: Value| {
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [part]},
            "configuration": {"returnImmediately": true}})
    };
    let stored = |id: &str| message(json!({"data": {"taskId": id}}));
    let mut more = message(json!({"text": "more"}));
    more["message"]["taskId"] = json!(run);
    match operation {
        Operation::SendMessage => vec![
            (UseCase::StartRun, stored(of.root)),
            (UseCase::StartRun, stored(of.child)),
            (UseCase::MessageRun, more),
        ],
        Operation::SendStreamingMessage => vec![
            (UseCase::StartRun, stored(of.root)),
            (UseCase::MessageRun, more),
        ],
        Operation::GetTask => vec![(UseCase::ReadRun, json!({"id": run}))],
        Operation::ListTasks => vec![(UseCase::ListRuns, json!({"contextId": of.context}))],
        Operation::CancelTask => vec![(UseCase::CancelRun, json!({"id": run}))],
        Operation::SubscribeToTask => vec![(UseCase::FollowRun, json!({"id": run}))],
        Operation::CreateTaskPushNotificationConfig => {
            let url = "https://receiver.example.com/hook";
            let given = json!({"taskId": run, "id": "c", "url": url});
            vec![(UseCase::ReportRun, given)]
        }
        Operation::GetTaskPushNotificationConfig => vec![(UseCase::ReadReports, config)],
        Operation::ListTaskPushNotificationConfigs => {
            vec![(UseCase::ReadReports, json!({"taskId": run}))]
        }
        Operation::DeleteTaskPushNotificationConfig => vec![(UseCase::ReportRun, config)],
        // It names nothing: `every_operation_needs_credentials_on_every_binding`.
        Operation::GetExtendedAgentCard => Vec::new(),
    }
}

/// What every binding answers, in one text, and the status that stands for the refusals.
pub(super) async fn answers(
    world: &Callers,
    token: Option<&str>,
    operation: Operation,
    request: &Value,
) -> (u16, String) {
    let (mut status, mut text) = (200, String::new());
    for binding in all_as(world.url(), token.map(|it| world.token(it))).await {
        let answer = one(binding, operation, request.clone()).await;
        if let Err(refused) = &answer {
            status = match &*refused.reasons[0] {
                "UNAUTHENTICATED" => 401,
                "PERMISSION_DENIED" => 403,
                _ => status,
            };
        }
        text.push_str(&format!("{answer:?}\n"));
    }
    (status, text)
}

/// The answer of one binding; of a stream that begins, no more than that.
async fn one(
    mut binding: Box<dyn Binding>,
    operation: Operation,
    request: Value,
) -> Result<Value, Refused> {
    if !matches!(
        operation,
        Operation::SendStreamingMessage | Operation::SubscribeToTask
    ) {
        return binding.ask(operation, request).await;
    }
    let (begun, has_begun) = oneshot::channel();
    tokio::select! {
        Ok(()) = has_begun => Ok(json!("a stream")),
        told = binding.follow(operation, request, Some(begun)) => told.map(|_| json!("a stream")),
    }
}
