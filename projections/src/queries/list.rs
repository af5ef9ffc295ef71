//! Lists of tasks in order of creation. spec: interface / tasks.list
//!
//! Every filter has an index that ends in the order of creation, so a page is read from its first
//! row on, without sorting. A page by cursor costs the same at any depth; a page by offset walks
//! over the rows before it.

use super::cursor::{Cursor, Order};
use super::select::{ListFilter, Select, Start};
use super::{rows, totals};
use crate::{Error, ReadModels, TaskView};
use sqlx::AssertSqlSafe;
use taskledger_domain::limits;
use taskledger_sql::Columns;

/// Bytes of tasks in one page. A page that would be larger ends early and has a cursor.
pub const LIST_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A page of a list.
#[derive(Debug, Clone)]
pub struct List {
    /// The tasks of this page, in the requested order.
    pub tasks: Vec<TaskView>,
    /// Tasks in the whole list, exact at the moment of reading.
    pub total: u64,
    /// Where the list goes on; `None` at its end.
    pub next_cursor: Option<Cursor>,
}

impl ReadModels {
    /// A page of at most `limit` tasks (1 to 1000; other values are moved to the nearer end) in
    /// `order` of creation, from `start` on.
    /// Cost: O(limit), for an offset O(offset + limit).
    ///
    /// # Errors
    /// [`Error::BadCursor`] when the cursor belongs to the other order; [`Error::Unavailable`],
    /// [`Error::Damaged`].
    pub async fn list(
        &self,
        filter: &ListFilter,
        order: Order,
        limit: u32,
        start: Start,
    ) -> Result<List, Error> {
        let limit = limit.clamp(1, limits::LIST_LIMIT_MAX) as usize;
        let mut tx = self.read().await?;
        let none = List {
            tasks: Vec::new(),
            total: 0,
            next_cursor: None,
        };
        let Some(select) = Select::new(&mut tx, filter).await? else {
            return Ok(none);
        };
        let total = totals::total(&mut tx, filter, &select).await?;
        // One more than wanted tells whether the list goes on.
        let (sql, args) = select.page(order, limit + 1, start)?;
        let found = tx.fetch_all(AssertSqlSafe(sql), args).await?;
        let nos: Vec<i64> = found
            .iter()
            .map(|row| Columns::of(row).int())
            .collect::<Result<_, _>>()?;
        let wanted = &nos[..nos.len().min(limit)];
        let found = rows::fetch(&mut tx, wanted, LIST_BYTES_MAX).await?;
        let next_cursor = found
            .last()
            .filter(|_| found.len() < nos.len())
            .map(|last| Cursor {
                order,
                position: last.created_position,
            });
        Ok(List {
            tasks: rows::views(&mut tx, found).await?,
            total,
            next_cursor,
        })
    }

    /// The database's plan for a page, one line for each step. For tests of the indexes.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn explain_list(
        &self,
        filter: &ListFilter,
        order: Order,
        start: Start,
    ) -> Result<Vec<String>, Error> {
        let mut tx = self.read().await?;
        let Some(select) = Select::new(&mut tx, filter).await? else {
            return Ok(Vec::new());
        };
        let (sql, args) = select.page(order, 1, start)?;
        Ok(tx.plan(&sql, args).await?)
    }
}
