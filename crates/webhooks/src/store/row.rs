//! Endpoints as rows.

use super::Error;
use crate::delivery::{Cause, DeliveryState, Health, Window};
use crate::endpoint::{DisabledReason, Endpoint, EndpointId, EventName, Filter, Life, Ordering};
use crate::reports::Form;
use std::sync::Arc;
use taskledger_domain::{FlowId, RunId, Timestamp};
use taskledger_sql::{Columns, json};

/// Columns that [`endpoint`] reads, in its order.
pub(super) const ENDPOINT: &str = "no, id, url, description, events, flow_id, user_id, labels, is_callback, \
    run_id, ordering, schedule, public_key, since, disabled_reason, disabled_at, created_at, updated_at, \
    failures, failing_since, window_since, window_attempts, window_failures, open_until, openings, \
    owner";

/// An endpoint without its keys and the names of its headers, and its number.
pub(super) fn endpoint(c: &mut Columns<'_>) -> Result<(i64, Endpoint), Error> {
    let no = c.int()?;
    let id = EndpointId(c.id()?);
    let url = c.text()?;
    let description = c.text()?;
    let filter = filter(c)?;
    let is_callback = c.int()? != 0;
    let run = c.opt_id()?.map(RunId);
    let ordering = ordering(c.word()?)?;
    let schedule = schedule(c.opt_word()?)?;
    let public_key = c.opt_text()?;
    let since = c.number()?;
    let reason = c.opt_word()?.map(reason).transpose()?;
    let disabled_at = c.opt_time()?;
    let endpoint = Endpoint {
        id,
        url,
        description,
        filter,
        life: if is_callback {
            Life::Run(run)
        } else {
            Life::Lasting
        },
        ordering,
        schedule,
        header_names: Vec::new(),
        key_times: Vec::new(),
        public_key,
        since,
        disabled: reason.map(|reason| (reason, disabled_at.unwrap_or(Timestamp(0)))),
        created_at: c.time()?,
        updated_at: c.time()?,
        health: health(c)?,
        owner: c.opt_text()?,
    };
    Ok((no, endpoint))
}

/// The columns `events, flow_id, user_id, labels`.
pub(super) fn filter(c: &mut Columns<'_>) -> Result<Filter, Error> {
    Ok(Filter {
        events: c.opt_word()?.map(events).transpose()?,
        flow: c.opt_id()?.map(FlowId),
        user: c.opt_text()?,
        labels: c.opt_word()?.map(json).transpose()?.unwrap_or_default(),
    })
}

/// The columns `failures, failing_since, window_since, window_attempts, window_failures, open_until,
/// openings`.
pub(super) fn health(c: &mut Columns<'_>) -> Result<Health, Error> {
    Ok(Health {
        failures: c.number()?,
        failing_since: c.opt_time()?,
        window: Window {
            since: c.opt_time()?,
            attempts: c.number()?,
            failures: c.number()?,
        },
        open_until: c.opt_time()?,
        openings: c.number()?,
    })
}

pub(super) fn cause(number: i64) -> Result<Cause, Error> {
    Cause::of_number(number).ok_or_else(|| Error::Damaged(format!("{number} is no cause")))
}

fn events(text: &str) -> Result<Arc<[EventName]>, Error> {
    let odd = || Error::Damaged(format!("`{text}` are no events"));
    let names: Vec<&str> = serde_json::from_str(text).map_err(|_| odd())?;
    let events = names.into_iter().map(EventName::parse);
    events.collect::<Option<Arc<[_]>>>().ok_or_else(odd)
}

pub(super) fn events_text(events: &[EventName]) -> String {
    serde_json::to_string(events).expect("names can always be written as JSON")
}

pub(super) fn ordering(text: &str) -> Result<Ordering, Error> {
    [Ordering::None, Ordering::Task, Ordering::Endpoint]
        .into_iter()
        .find(|ordering| ordering.as_str() == text)
        .ok_or_else(|| Error::Damaged(format!("`{text}` is no ordering")))
}

/// The format of an endpoint's reports of a run, from the columns with its name and its media type.
pub(super) fn reports(c: &mut Columns<'_>) -> Result<Option<Form>, Error> {
    let is_named = c.opt_word()?.is_some();
    let content_type = c.opt_text()?;
    Ok(is_named.then(|| Form::of(content_type.as_deref())))
}

pub(super) fn state(text: &str) -> Result<DeliveryState, Error> {
    DeliveryState::parse(text)
        .ok_or_else(|| Error::Damaged(format!("`{text}` is no state of a delivery")))
}

pub(super) fn schedule(text: Option<&str>) -> Result<Option<Arc<[u32]>>, Error> {
    let parsed = text.map(serde_json::from_str::<Vec<u32>>).transpose();
    let parsed = parsed.map_err(|e| Error::Damaged(format!("a schedule: {e}")))?;
    Ok(parsed.map(Arc::from))
}

pub(super) fn schedule_text(schedule: &[u32]) -> String {
    serde_json::to_string(schedule).expect("numbers can always be written as JSON")
}

fn reason(text: &str) -> Result<DisabledReason, Error> {
    use DisabledReason::{Failing, Gone, Requested};
    [Requested, Gone, Failing]
        .into_iter()
        .find(|reason| reason.as_str() == text)
        .ok_or_else(|| Error::Damaged(format!("`{text}` is no reason")))
}

/// Rows of sealed values are known by these names.
pub(super) fn key_row(endpoint: EndpointId, number: i64) -> String {
    format!("endpoint_keys/{endpoint}/{number}")
}

pub(super) fn header_row(endpoint: EndpointId, name: &str) -> String {
    format!("endpoint_headers/{endpoint}/{name}")
}
