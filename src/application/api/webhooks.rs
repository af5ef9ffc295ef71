//! Requests and replies about webhooks, and what a door must know to read and describe them.
//!
//! The types are those of the crate that sends; doors know them by these names only.

pub use crate::webhooks::URL_CHARS_MAX;
pub use crate::webhooks::api::{
    Deliveries, Listed, NewWebhook, Page, Secrets, Tested, View, WebhookChange, WithSecret,
};
pub use crate::webhooks::callback::Callback;
pub use crate::webhooks::delivery::{DeliveryState, Secret};
pub use crate::webhooks::endpoint::{EndpointId, EventName, Filter, Ordering};
pub use crate::webhooks::headers;
pub use crate::webhooks::outbox::BODY_BYTES_MAX;
pub use crate::webhooks::reports::{
    Change, Form, Made, NAME_CHARS_MAX, Receiver, Report, Reported, Returned, Said, TOKEN_HEADER,
    V03_BODY, Wording,
};
pub use crate::webhooks::schedule::{ENTRIES_MAX, SECONDS_MAX};
pub use crate::webhooks::secret::{self, Signature};
pub use crate::webhooks::store::{DeliveryFilter, Recover};
