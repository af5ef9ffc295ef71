//! Answers of the application as the JSON that callers of JSON-RPC see.

use serde_json::Value;
use serde_json::value::RawValue;
use taskledger::application::api::{Encoded, Explained, HistoryPage, Page, Reply, Then};
use taskledger::transport::jsonrpc::replies;
use taskledger::transport::jsonrpc::task_json::{PageJson, TaskJson, ThenJson};
use taskledger::transport::jsonrpc::text::Text;
use taskledger_projections::TaskView;

/// An answer that has a JSON form.
pub(crate) trait Shown: Send + Sized {
    fn shown(self) -> impl Future<Output = Value> + Send;
}

fn value(answer: &impl serde::Serialize) -> Value {
    serde_json::to_value(answer).expect("answers are JSON")
}

impl Shown for Box<RawValue> {
    async fn shown(self) -> Value {
        serde_json::from_str(self.get()).expect("answers are JSON")
    }
}

impl Shown for Encoded {
    async fn shown(self) -> Value {
        let text = Text::from(self).whole(usize::MAX).await;
        text.expect("the answer is not cut off").shown().await
    }
}

impl Shown for TaskView {
    async fn shown(self) -> Value {
        value(&TaskJson(&self))
    }
}

impl Shown for Then {
    async fn shown(self) -> Value {
        value(&ThenJson(&self))
    }
}

impl Shown for Page {
    async fn shown(self) -> Value {
        value(&PageJson(&self))
    }
}

impl Shown for Reply {
    async fn shown(self) -> Value {
        replies::reply(&self).shown().await
    }
}

impl Shown for Explained {
    async fn shown(self) -> Value {
        Reply::Explained(Box::new(self)).shown().await
    }
}

impl Shown for HistoryPage {
    async fn shown(self) -> Value {
        Reply::History(Box::new(self)).shown().await
    }
}
