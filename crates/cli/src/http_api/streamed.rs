//! The events of a run on a server, read from the stream that answers the call which began the run.

use crate::ApiError;
use crate::api::run_events::{Begun, News, RunEvent, RunEvents};
use crate::event_stream::{EventStream, JsonEvent as _, Piece, StreamItem};
use async_trait::async_trait;
use std::collections::VecDeque;

/// Those of a run on a server.
pub(super) struct Streamed {
    stream: EventStream,
    /// Read, and not told yet.
    waiting: VecDeque<News>,
}

impl Streamed {
    /// Waits for the answer of the call that has begun the run, which comes first.
    pub(super) async fn begun(mut stream: EventStream) -> Result<Begun, ApiError> {
        let pieces = loop {
            match stream.next().await? {
                Some(StreamItem::Opened { .. }) => {}
                Some(StreamItem::Pieces(pieces)) => break pieces,
                Some(StreamItem::Lost { reason, .. }) => return Err(ApiError::Connection(reason)),
                None => {
                    let text = "the stream of the run has ended before it began".to_owned();
                    return Err(ApiError::Protocol(text));
                }
            }
        };
        let mut waiting = events(pieces);
        match waiting.pop_front() {
            Some(News::Event(RunEvent { data: answer, .. })) => Ok(Begun {
                answer,
                events: Some(Box::new(Self { stream, waiting })),
            }),
            Some(News::Lost(_) | News::Found) | None => Err(ApiError::Protocol(
                "the answer of a call that begins a run is missing".to_owned(),
            )),
        }
    }
}

#[async_trait]
impl RunEvents for Streamed {
    async fn next(&mut self) -> Result<Option<News>, ApiError> {
        loop {
            if let Some(news) = self.waiting.pop_front() {
                return Ok(Some(news));
            }
            match self.stream.next().await? {
                None => return Ok(None),
                Some(StreamItem::Opened { .. }) => return Ok(Some(News::Found)),
                Some(StreamItem::Lost { reason, .. }) => return Ok(Some(News::Lost(reason))),
                Some(StreamItem::Pieces(pieces)) => self.waiting = events(pieces),
            }
        }
    }
}

fn events(pieces: Vec<Piece>) -> VecDeque<News> {
    let events = pieces.into_iter().filter_map(|piece| match piece {
        Piece::Event(event) => Some(News::Event(RunEvent {
            data: event.json(),
            name: event.name,
        })),
        Piece::Place(_) => None,
    });
    events.collect()
}
