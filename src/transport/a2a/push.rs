//! Push notification configurations: the addresses to which changes of a task are reported.

use super::calls::run_of;
use super::mapping::errors::Doing;
use super::{A2a, Heard};
use crate::application::api::webhooks::{
    Callback, NAME_CHARS_MAX, Receiver, Reported, V03_BODY, headers,
};
use std::sync::Arc;
use taskledger_a2a::request::{
    AuthenticationInfo, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, PushNotificationConfigRequest,
    TaskPushNotificationConfig,
};
use taskledger_a2a::{Error, ErrorKind, Fault, Faults};
use taskledger_domain::RunId;

/// Configurations of a page, unless said otherwise.
const PAGE_DEFAULT: usize = 50;
/// Configurations of a page at most.
const PAGE_MAX: usize = 100;

impl A2a {
    pub(super) async fn push_created(
        &self,
        heard: &Heard,
        config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, Error> {
        self.pushes()?;
        let run = run_of(config.task_id.as_deref().unwrap_or_default())?;
        let callback = callback(config, self.body_type(heard), "")?;
        let kept = self.runs.report(&heard.context, run, callback).await;
        let kept = kept.map_err(|error| self.told(error, Doing::Reporting))?;
        Ok(shown(run, kept))
    }

    pub(super) async fn push_read(
        &self,
        heard: &Heard,
        request: PushNotificationConfigRequest,
    ) -> Result<TaskPushNotificationConfig, Error> {
        self.pushes()?;
        let run = run_of(&request.task_id)?;
        let name = Arc::from(&*request.id);
        let found = self.runs.report_of(&heard.context, run, &name).await;
        let found = found.map_err(|error| self.told(error, Doing::Reporting))?;
        found.map(|it| shown(run, it)).ok_or_else(|| {
            let reason = "the task has no push notification configuration of this id";
            let error = Error::new(ErrorKind::TaskNotFound, reason);
            error.with("taskId", request.task_id)
        })
    }

    pub(super) async fn push_listed(
        &self,
        heard: &Heard,
        request: ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse, Error> {
        self.pushes()?;
        let run = run_of(&request.task_id)?;
        let size = request.page_size.and_then(|it| usize::try_from(it).ok());
        let size = size.map_or(PAGE_DEFAULT, |it| it.clamp(1, PAGE_MAX));
        let after = request.page_token.as_deref().map_or(Ok(0), str::parse);
        let after = after.map_err(|_| {
            let reason = "not a token that a page of this list has given";
            Error::invalid_member("pageToken", reason)
        })?;
        let page = self.runs.reports_of(&heard.context, run, after, size).await;
        let page = page.map_err(|error| self.told(error, Doing::Reporting))?;
        Ok(ListTaskPushNotificationConfigsResponse {
            configs: page.rows.into_iter().map(|it| shown(run, it)).collect(),
            next_page_token: page.next_cursor.unwrap_or_default(),
        })
    }

    pub(super) async fn push_deleted(
        &self,
        heard: &Heard,
        request: PushNotificationConfigRequest,
    ) -> Result<(), Error> {
        self.pushes()?;
        let run = run_of(&request.task_id)?;
        let name = Arc::from(&*request.id);
        let deleted = self.runs.unreport(&heard.context, run, &name).await;
        deleted.map_err(|error| self.told(error, Doing::Reporting))
    }

    /// The receiver that a message brings along.
    pub(super) fn push_of(
        &self,
        heard: &Heard,
        config: Option<TaskPushNotificationConfig>,
    ) -> Result<Option<Callback>, Error> {
        let Some(config) = config else {
            return Ok(None);
        };
        self.pushes()?;
        let at = "configuration.taskPushNotificationConfig.";
        callback(config, self.body_type(heard), at).map(Some)
    }

    /// The media type of what is sent to the receivers of a caller, which tells its form too.
    fn body_type(&self, heard: &Heard) -> &'static str {
        match heard.v03 {
            true => V03_BODY,
            false => self.edition().rest_media_type(),
        }
    }

    fn pushes(&self) -> Result<(), Error> {
        if self.options.refuses_push {
            let reason =
                "this agent does not report changes to URLs in this protocol; use a stream";
            return Err(Error::new(ErrorKind::PushNotificationNotSupported, reason));
        }
        Ok(())
    }
}

/// A configuration as it is answered: without what is secret.
fn shown(run: RunId, receiver: Receiver) -> TaskPushNotificationConfig {
    TaskPushNotificationConfig {
        tenant: None,
        id: Some(receiver.name.to_string()),
        task_id: Some(run.to_string()),
        url: receiver.url.to_string(),
        token: None,
        authentication: receiver.scheme.map(|scheme| AuthenticationInfo {
            scheme: scheme.to_string(),
            credentials: None,
        }),
    }
}

/// A configuration as it is kept. `at` begins the paths of its members.
fn callback(
    config: TaskPushNotificationConfig,
    content_type: &'static str,
    at: &str,
) -> Result<Callback, Error> {
    let mut faults = Faults::default();
    let mut fault = |member: &str, description: String| {
        faults.note(Fault::new(format!("{at}{member}"), description));
    };
    let chars = config.id.as_deref().map_or(0, |id| id.chars().count());
    if chars > NAME_CHARS_MAX {
        fault(
            "id",
            format!("{chars} characters, at most {NAME_CHARS_MAX} are taken"),
        );
    }
    let mut value = |member: &str, text: &str| {
        if let Err(reason) = headers::value(text) {
            // The text is not repeated: it is a secret.
            fault(
                member,
                format!("{reason}, expected {}", headers::VALUE_EXPECTED),
            );
        }
    };
    if let Some(token) = &config.token {
        value("token", token);
    }
    let given = config.authentication.as_ref();
    if let Some(AuthenticationInfo {
        scheme,
        credentials,
    }) = given
    {
        value("authentication.scheme", scheme);
        if scheme.contains(char::is_whitespace) {
            fault(
                "authentication.scheme",
                "one word is required, such as `Bearer`".to_owned(),
            );
        } else if let Some(credentials) = credentials {
            value(
                "authentication.credentials",
                &format!("{scheme} {credentials}"),
            );
        }
    }
    if !faults.is_empty() {
        return Err(Error::invalid(faults));
    }
    let scheme = given.map(|it| Arc::from(&*it.scheme));
    Ok(Callback {
        url: Arc::from(config.url),
        headers: Callback::secret_headers(
            config.token.as_deref(),
            scheme.as_deref(),
            given.and_then(|it| it.credentials.as_deref()),
        ),
        secret: None,
        reported: Some(Reported {
            name: config.id.map(Arc::from),
            scheme,
            content_type: Arc::from(content_type),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_sent_is_told_with_its_field_and_without_the_secret() {
        let config = TaskPushNotificationConfig {
            tenant: None,
            id: Some("x".repeat(NAME_CHARS_MAX + 1)),
            task_id: None,
            url: "https://a".to_owned(),
            token: Some("hunter2\r\nhost: b".to_owned()),
            authentication: Some(AuthenticationInfo {
                scheme: "Bea rer".to_owned(),
                credentials: Some("hunter2".to_owned()),
            }),
        };
        let refused = callback(config.clone(), V03_BODY, "a.").expect_err("refused");
        let fields: Vec<_> = refused.faults.listed.iter().map(|it| &*it.field).collect();
        assert_eq!(fields, ["a.id", "a.token", "a.authentication.scheme"]);
        assert!(!format!("{refused:?}").contains("hunter2"));
        let good = TaskPushNotificationConfig {
            id: None,
            token: Some("t".to_owned()),
            authentication: Some(AuthenticationInfo {
                scheme: "Bearer".to_owned(),
                credentials: Some("c".to_owned()),
            }),
            ..config
        };
        let kept = callback(good, V03_BODY, "").expect("a receiver");
        let headers: Vec<_> = (kept.headers.iter())
            .map(|(name, value)| (&**name, &*value.0))
            .collect();
        let expected = [
            ("authorization", "Bearer c"),
            ("x-a2a-notification-token", "t"),
        ];
        assert_eq!(headers, expected);
    }
}
