//! Reads of the whole log, which step over damaged rows and name them.

use super::failure::of_read;
use super::queries::Queries;
use super::retention;
use super::row::{Row, columns};
use crate::Error;
use crate::damage::{Damaged, PAGE_DAMAGED_MAX};
use std::sync::Arc;
use taskledger_domain::{Position, Recorded};

/// By the primary key.
pub(super) const ALL_EVENTS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM events AS e
      LEFT JOIN streams AS s ON s.number = e.stream
      WHERE e.position > ?1 AND e.position <= ?2
      ORDER BY e.position"
);

/// A part of the whole log.
#[derive(Debug, Default)]
pub(super) struct Span {
    pub(super) events: Vec<Arc<Recorded>>,
    pub(super) damaged: Vec<Damaged>,
    /// Position of the last of them, dropped ones included.
    pub(super) next: Position,
}

impl Queries<'_> {
    /// Up to `limit` events with positions in `after + 1 ..= head`, all of which exist unless they
    /// were dropped or are damaged; fewer, but at least one, when they are larger than `bytes_max`.
    pub(super) fn read_all(
        &self,
        mut after: Position,
        limit: usize,
        head: Position,
        bytes_max: usize,
    ) -> Result<Span, Error> {
        let mut span = Span {
            next: after,
            ..Span::default()
        };
        while after < head {
            let last = after.saturating_add(limit as u64).min(head);
            self.read_span(after, last, bytes_max, &mut span)?;
            if !span.events.is_empty() || span.damaged.len() >= PAGE_DAMAGED_MAX {
                return Ok(span);
            }
            // All of the span was dropped or is damaged.
            let next = retention::next_position(self.connection, last);
            let next = next.map_err(|e| of_read(&e, after))?;
            after = match next {
                Some(next) => next - 1,
                None => head,
            };
            if after > last && after > self.dropped()?.horizon {
                span.damaged.push(Damaged::missing(last + 1));
            }
            span.next = after;
        }
        Ok(span)
    }

    fn read_span(
        &self,
        after: Position,
        last: Position,
        bytes_max: usize,
        span: &mut Span,
    ) -> Result<(), Error> {
        let mut bytes = 0;
        let mut after = after;
        let mut statement = self.statement(ALL_EVENTS)?;
        while after < last {
            let range = (after.cast_signed(), last.cast_signed());
            let mut rows = statement.query(range).map_err(|e| of_read(&e, after))?;
            loop {
                if span.damaged.len() >= PAGE_DAMAGED_MAX {
                    return Ok(());
                }
                let sql = match rows.next() {
                    Ok(Some(sql)) => sql,
                    Ok(None) => {
                        drop(rows);
                        if after < last && last > self.dropped()?.horizon {
                            span.damaged.push(Damaged::missing(after + 1));
                        }
                        span.next = last;
                        return Ok(());
                    }
                    // A page of the file that holds the next row is damaged: it is asked for what follows.
                    Err(error) => match of_read(&error, after) {
                        Error::Corrupt { reason, .. } => {
                            after += 1;
                            span.next = after;
                            span.damaged.push(Damaged {
                                position: after,
                                flow: None,
                                reason: Arc::from(reason),
                            });
                            break;
                        }
                        error @ (Error::Unavailable(_)
                        | Error::NotWritable(_)
                        | Error::Invalid(_)) => return Err(error),
                    },
                };
                let read = Row::read(sql);
                let position = match &read {
                    Ok(row) => row.position,
                    Err(damage) => damage.position,
                };
                if position != after + 1
                    && position - 1 > retention::read_dropped(self.connection)?.horizon
                {
                    span.damaged.push(Damaged::missing(after + 1));
                }
                match read.and_then(|row| Ok((row.data.len(), row.decode()?))) {
                    Ok((len, event)) => {
                        bytes += len;
                        if bytes > bytes_max && !span.events.is_empty() {
                            return Ok(());
                        }
                        span.events.push(Arc::new(event));
                    }
                    Err(damage) => span.damaged.push(damage.into()),
                }
                after = position;
                span.next = after;
            }
        }
        Ok(())
    }
}
