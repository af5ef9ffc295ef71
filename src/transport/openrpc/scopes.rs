//! The scopes that calls of a method need.

use crate::application::api::UseCase;

/// Methods that are not named like their use case. Calls that create tasks need another scope than those that also run
/// them; `execute` says which.
const OTHERS: &[(&str, &[UseCase])] = &[
    (super::DISCOVER, &[]),
    ("tasks.resubscribe", &[UseCase::SubscribeTask]),
    (
        "workflows.create",
        &[UseCase::CreateTasks, UseCase::ExecuteTasks],
    ),
    (
        "workflows.run",
        &[UseCase::CreateTasks, UseCase::ExecuteTasks],
    ),
    ("workflows.schemas", &[UseCase::GetWorkflow]),
];

/// The scopes that calls of a method need: one of them, which its parameters decide where there are several; none where
/// any credentials will do. `None`: no use case is known.
pub(super) fn of(method: &str) -> Option<Vec<&'static str>> {
    let named = UseCase::ALL.iter().find(|it| it.as_str() == method);
    let use_cases = match named {
        Some(use_case) => std::slice::from_ref(use_case),
        None => OTHERS.iter().find(|(name, _)| *name == method)?.1,
    };
    let scopes = use_cases.iter().filter_map(|it| it.scope());
    Some(scopes.map(|scope| scope.as_str()).collect())
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::transport::jsonrpc::methods;

    #[test]
    fn every_method_has_a_use_case() {
        for method in methods::table() {
            assert!(of(method.name).is_some(), "{}", method.name);
        }
        assert_eq!(of("tasks.cancel"), Some(vec!["tasks:run"]));
        assert_eq!(of("workflows.run"), Some(vec!["tasks:write", "tasks:run"]));
        assert_eq!(of("rpc.discover"), Some(vec![]));
        assert_eq!(of("no.such"), None);
    }
}
