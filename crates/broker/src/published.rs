//! The table of published tasks. Owns the rows of `published` and the questions about them; `intake` adds to them and
//! `sweep` removes them.

use crate::keys::Owner;
use crate::mark::Mark;
use crate::{BrokerStore, Error};
use std::sync::{Arc, LazyLock};
use taskledger_domain::{FlowId, Position, Recorded, TaskId, Timestamp};
use taskledger_sql::{Columns, MultiRow, Row, Tx};

/// Tasks of one external id in an answer, the newest. Agents make ids of seconds, so a few tasks may share one.
pub const NAMESAKES_MAX: u32 = 100;

/// A task that was published through the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The task that the message has become.
    pub task_id: TaskId,
    /// The flow that the task belongs to.
    pub flow: FlowId,
    /// Who published it.
    pub owner: Owner,
    /// The agent that waits for it.
    pub requester: Arc<str>,
    /// What agents call it.
    pub external_id: Arc<str>,
    /// Position of the event that created the task.
    pub position: Position,
    /// When it was created.
    pub published_at: Timestamp,
}

impl Published {
    /// The task that an event has created, with its mark.
    pub(crate) fn of(tenant: &Arc<str>, recorded: &Recorded, task_id: TaskId, mark: Mark) -> Self {
        Self {
            task_id,
            flow: recorded.flow,
            owner: Owner {
                tenant: tenant.clone(),
                actor: recorded.metadata.actor.clone(),
            },
            requester: mark.requester,
            external_id: mark.external_id,
            position: recorded.position,
            published_at: recorded.time,
        }
    }
}

impl BrokerStore {
    /// The published task with an id; `None` if there is none, or of another tenant. Cost: one row.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn published(
        &self,
        tenant: &Arc<str>,
        task_id: TaskId,
    ) -> Result<Option<Published>, Error> {
        if let Some(found) = self.recent.among(&[task_id]).pop() {
            return Ok((found.owner.tenant == *tenant).then_some(found));
        }
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.id(task_id.0);
            args.text(tenant.clone());
            let row = tx.fetch_optional(ONE, args).await?;
            let found = row.as_ref().map(published).transpose()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// The tasks that an owner calls by an external id, newest first, at most [`NAMESAKES_MAX`]; those of one requester
    /// if it is named. Cost: O(rows of the answer).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn by_external_id(
        &self,
        owner: &Owner,
        requester: Option<&Arc<str>>,
        external_id: &Arc<str>,
    ) -> Result<Vec<Published>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.bytes(owner.name(external_id).to_vec());
            args.text(owner.tenant.clone());
            args.text(owner.actor.clone());
            args.text(external_id.clone());
            let statement = match requester {
                None => NAMESAKES,
                Some(requester) => {
                    args.bytes(owner.inbox(requester).to_vec());
                    args.text(requester.clone());
                    NAMESAKES_OF_REQUESTER
                }
            };
            args.int(i64::from(NAMESAKES_MAX));
            let rows = tx.fetch_all(statement, args).await?;
            let found = rows.iter().map(published).collect::<Result<_, Error>>()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }
}

impl BrokerStore {
    /// The flows among these in which a task other than the root was published: only such tasks wait for others. Cost:
    /// one query, O(published tasks of these flows).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn flows_with_dependents(&self, flows: &[FlowId]) -> Result<Vec<FlowId>, Error> {
        if flows.is_empty() || self.passed.is_used() == Some(false) {
            return Ok(Vec::new());
        }
        let work = async {
            let mut tx = self.read().await?;
            let rows = DEPENDENTS
                .fetch(&mut tx, flows, |flow, args| args.id(flow.0))
                .await?;
            tx.commit().await?;
            let flow = |row: &Row| Ok(FlowId(Columns::of(row).id()?));
            rows.iter().map(flow).collect()
        };
        self.order(work).await
    }
}

/// Those of some tasks that were published. Cost: one query, O(tasks).
pub(crate) async fn among(tx: &mut Tx<'_>, tasks: &[TaskId]) -> Result<Vec<Published>, Error> {
    if tasks.is_empty() {
        return Ok(Vec::new());
    }
    let rows = AMONG.fetch(tx, tasks, |task, args| args.id(task.0)).await?;
    rows.iter().map(published).collect()
}

/// Adds tasks that are not there yet.
pub(crate) async fn add(tx: &mut Tx<'_>, tasks: &[Published]) -> Result<(), Error> {
    let bind = |it: &Published, args: &mut taskledger_sql::Args| {
        args.id(it.task_id.0);
        args.id(it.flow.0);
        bind_names(args, &it.owner, &it.requester, &it.external_id);
        args.position(it.position);
        args.time(it.published_at);
    };
    Ok(ADD.execute(tx, tasks, bind).await?)
}

/// The columns that say whose a task is, and what its requester and it are called: those texts, then their digests.
pub(crate) fn bind_names(
    args: &mut taskledger_sql::Args,
    owner: &Owner,
    requester: &Arc<str>,
    external_id: &Arc<str>,
) {
    args.text(owner.tenant.clone());
    args.text(owner.actor.clone());
    args.text(requester.clone());
    args.text(external_id.clone());
    args.bytes(owner.inbox(requester).to_vec());
    args.bytes(owner.name(external_id).to_vec());
}

fn published(row: &Row) -> Result<Published, Error> {
    let mut c = Columns::of(row);
    Ok(Published {
        task_id: TaskId(c.id()?),
        flow: FlowId(c.id()?),
        owner: Owner {
            tenant: c.text()?,
            actor: c.text()?,
        },
        requester: c.text()?,
        external_id: c.text()?,
        position: c.number()?,
        published_at: c.time()?,
    })
}

const ONE: &str =
    "SELECT task_id, flow_id, tenant, actor, requester, external_id, position, published_at
    FROM published WHERE task_id = $1 AND tenant = $2";
// By `published_name`.
const NAMESAKES: &str =
    "SELECT task_id, flow_id, tenant, actor, requester, external_id, position, published_at
    FROM published
    WHERE name = $1 AND tenant = $2 AND actor = $3 AND external_id = $4
    ORDER BY position DESC LIMIT $5";
// By `published_name`: few requesters use the same id.
const NAMESAKES_OF_REQUESTER: &str = "SELECT task_id, flow_id, tenant, actor, requester, external_id, position,
        published_at
    FROM published
    WHERE name = $1 AND tenant = $2 AND actor = $3 AND external_id = $4 AND inbox = $5 AND requester = $6
    ORDER BY position DESC LIMIT $7";
static AMONG: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT task_id, flow_id, tenant, actor, requester, external_id, position, published_at
         FROM published WHERE task_id IN (",
        1,
        ")",
    )
});
// By `published_below`.
static DEPENDENTS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "WITH asked (flow) AS (",
        1,
        ") SELECT asked.flow FROM asked
           WHERE EXISTS (SELECT 1 FROM published p WHERE p.flow_id = asked.flow AND p.flow_id <> p.task_id)",
    )
});
static ADD: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "INSERT INTO published
           (task_id, flow_id, tenant, actor, requester, external_id, inbox, name, position, published_at)",
        10,
        "ON CONFLICT (task_id) DO NOTHING",
    )
});
