//! What commands that follow a stream share: where it begins, what is said about its connection, and
//! how somebody stops it.

use super::event_stream::{EventStream, JsonEvent, Piece, RESET, StreamItem, Wanted};
use super::remote::quoted;
use super::{ApiError, CliError, clock};
use clap::builder::PossibleValuesParser;
use std::cell::RefCell;
use std::io;
use taskledger_domain::NoticeKind;
use tokio::signal::unix::{SignalKind, signal};

/// Where a stream begins.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Begin {
    /// Start at the beginning of the log, now, or after this position of the log
    #[arg(long, value_name = "beginning|now|POSITION", value_parser = from, conflicts_with = "last_event_id")]
    pub(super) from: Option<String>,
    /// Resume after this cursor, which an earlier call printed
    #[arg(long, value_name = "CURSOR", value_parser = cursor)]
    pub(super) last_event_id: Option<String>,
}

fn from(text: &str) -> Result<String, String> {
    let known = matches!(text, "beginning" | "now") || text.parse::<u64>().is_ok();
    if known {
        Ok(text.to_owned())
    } else {
        Err("expected `beginning`, `now` or a position".to_owned())
    }
}

/// The options with these values, each behind a blank, for a command to paste; none for what was not given.
pub(super) fn given(options: &[(&str, Option<&str>)]) -> String {
    let given = options.iter();
    given
        .filter_map(|(name, value)| Some(format!(" --{name} {}", quoted((*value)?))))
        .collect()
}

/// Any text that a header can hold; the server knows which are cursors.
fn cursor(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err("expected a cursor, as printed by an earlier call".to_owned())
    }
}

/// The names of events.
pub(super) fn types() -> PossibleValuesParser {
    PossibleValuesParser::new(NoticeKind::ALL.map(NoticeKind::as_str))
}

/// The place behind everything that was written. Whoever writes moves it.
#[derive(Debug, Default)]
pub(super) struct LastCursor {
    place: RefCell<Option<String>>,
    command: RefCell<String>,
}

impl LastCursor {
    /// Behind these pieces, which were written.
    pub(super) fn passed(&self, pieces: &[Piece]) {
        let last = pieces.iter().rev().map(Piece::place);
        if let Some(last) = last.into_iter().find(|place| !place.is_empty()) {
            self.set(last);
        }
    }

    /// At a place that is known.
    pub(super) fn set(&self, place: &str) {
        *self.place.borrow_mut() = Some(place.to_owned());
    }

    /// The command that follows the same, but for the place.
    pub(super) fn is_of(&self, command: String) {
        *self.command.borrow_mut() = command;
    }

    /// Tells somebody who has stopped how to go on.
    pub(super) fn farewell(&self) {
        say(&self.last_words());
    }

    fn last_words(&self) -> String {
        match self.place.borrow().as_deref() {
            Some(place) => format!(
                "stopped; to continue from here: {} --last-event-id {place}",
                self.command.borrow()
            ),
            None => "stopped".to_owned(),
        }
    }
}

/// Tells what becomes of the connection, each loss once.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    lost: bool,
}

impl Remarks {
    /// What there is to say.
    pub(super) fn about(&mut self, told: &StreamItem) -> Option<String> {
        match told {
            StreamItem::Opened { .. } => std::mem::take(&mut self.lost)
                .then(|| "reconnected, continuing after the last event".to_owned()),
            StreamItem::Lost { .. } if self.lost => None,
            StreamItem::Lost { reason, .. } => {
                self.lost = true;
                Some(format!("{reason}; trying again"))
            }
            StreamItem::Pieces(pieces) => pieces.iter().find_map(|piece| match piece {
                Piece::Event(event) if event.name == RESET => {
                    let reason = event.json()["reason"]
                        .as_str()
                        .unwrap_or("unknown")
                        .to_owned();
                    Some(format!(
                        "cannot resume from this cursor ({reason}): {}",
                        meaning(&reason)
                    ))
                }
                Piece::Event(_) | Piece::Place(_) => None,
            }),
        }
    }
}

/// What a reason for beginning anew means, and what to do.
fn meaning(reason: &str) -> &'static str {
    match reason {
        "another_log" => {
            "the cursor belongs to the log of another server or data folder; continuing from now, --from beginning shows earlier events"
        }
        "ahead_of_log" => {
            "the cursor is after the end of this log, which may have been restored from a backup; continuing from now, --from beginning shows earlier events"
        }
        "malformed" => {
            "this is not a cursor; continuing from now. --last-event-id takes a cursor that an earlier call printed"
        }
        "archived" => {
            "some events since the cursor have been archived, see `taskledger retention --help`"
        }
        _ => "some events since the cursor are missing",
    }
}

/// The place at which a stream begins.
pub(super) async fn place_of(wanted: Wanted) -> Result<String, CliError> {
    let mut stream = EventStream::open(wanted, clock())?;
    match stream.next().await? {
        Some(StreamItem::Opened {
            place: Some(place), ..
        }) => return Ok(place),
        Some(StreamItem::Lost { reason, .. }) => return Err(ApiError::Connection(reason).into()),
        Some(StreamItem::Opened { place: None, .. } | StreamItem::Pieces(_)) | None => {}
    }
    let text = "the server sent no cursor for the start of its stream".to_owned();
    Err(ApiError::Protocol(text).into())
}

/// A remark for people. When nobody reads standard error, there is nobody to tell.
pub fn say(text: &str) {
    taskledger_terminal::message(&format!("taskledger: {text}"));
}

/// Waits until somebody wants this program to end: Ctrl-C, or SIGTERM.
///
/// # Errors
/// The system refuses to tell.
pub(super) async fn stopped() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_stream::Event;
    use std::time::Duration;

    #[test]
    fn a_loss_is_told_once_however_many_attempts_follow() {
        let mut remarks = Remarks::default();
        let lost = StreamItem::Lost {
            reason: "gone".to_owned(),
            pause: Duration::ZERO,
        };
        let opened = |again| StreamItem::Opened { again, place: None };
        assert_eq!(remarks.about(&opened(false)), None);
        for _ in 0..2 {
            assert_eq!(remarks.about(&lost).as_deref(), Some("gone; trying again"));
            assert_eq!(remarks.about(&lost), None);
            assert!(remarks.about(&opened(true)).is_some());
        }
        let reset = Piece::Event(Event {
            name: RESET.to_owned(),
            data: r#"{"reason":"another_log"}"#.to_owned(),
            id: "c".to_owned(),
        });
        let said = remarks.about(&StreamItem::Pieces(vec![reset]));
        assert_eq!(
            said.as_deref(),
            Some(
                "cannot resume from this cursor (another_log): the cursor belongs to the log of another server or data folder; continuing from now, --from beginning shows earlier events"
            )
        );
    }

    #[test]
    fn a_place_is_the_last_one_that_was_named() {
        let place = LastCursor::default();
        let at = |id: &str| Piece::Place(id.to_owned());
        assert_eq!(place.last_words(), "stopped");
        place.is_of("taskledger watch f --url http://h:1".to_owned());
        place.passed(&[at("a"), at("b"), at("")]);
        place.passed(&[]);
        assert_eq!(
            place.last_words(),
            "stopped; to continue from here: taskledger watch f --url http://h:1 --last-event-id b"
        );
    }

    #[test]
    fn only_what_can_be_a_place_is_taken() {
        assert!(from("beginning").is_ok() && from("7").is_ok());
        assert!(from("-1").is_err() && from("latest").is_err());
        assert!(cursor("AQ-_").is_ok());
        assert!(cursor("").is_err() && cursor("a b").is_err() && cursor("a\r\nb").is_err());
    }
}
