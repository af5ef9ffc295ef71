//! The hash chain, which reveals a changed event even if its checksum was recomputed.
//!
//! Owns: what is hashed, the text form of a hash, and following the chain along the log.
//! The *body* of an event is the SHA-256 of what an append brings of it, without its flow and version (`Row::body`).
//! Its *content* is the SHA-256 of flow, version and body. Its
//! *hash* is the SHA-256 of the hash of the event before it, its position, the time at which it was
//! recorded, and its content. The first event of a chain follows 32 bytes of zero. Events that were
//! imported without hashes have none; the chain begins after them. Of a dropped event position, time, flow, version and
//! body stay behind ([`Remains`]), so the chain can still be followed over it, and proves which flow it belonged to.
//! Whoever keeps the hash of one position ([`Mark`]) can tell later whether anything up to it was
//! changed. `migrations/postgres/log/0001_event_log.sql` computes the same in the database.

#[cfg(test)]
mod tests;

use super::row::{Row, put};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use taskledger_domain::{FlowId, Position, Timestamp, Version};
use uuid::Uuid;

/// A SHA-256, in text 64 hexadecimal digits in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// What the first event of a chain follows.
    pub const BEFORE_FIRST: Self = Self([0; 32]);

    /// The 32 bytes of the hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// From 32 bytes.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The content of an event with this body.
    fn content_of(self, flow: FlowId, version: Version) -> Self {
        let mut bytes = [0u8; 16 + 8 + 32];
        let mut rest: &mut [u8] = &mut bytes;
        put(&mut rest, flow.0.as_bytes());
        put(&mut rest, &version.to_be_bytes());
        put(&mut rest, &self.0);
        Self(Sha256::digest(bytes).into())
    }

    /// The hash of an event that follows the one with this hash.
    #[must_use]
    pub fn link(self, position: Position, recorded_at: Timestamp, content: Self) -> Self {
        let mut linked = [0u8; 32 * 2 + 8 * 2];
        let mut rest: &mut [u8] = &mut linked;
        put(&mut rest, &self.0);
        put(&mut rest, &position.to_be_bytes());
        put(&mut rest, &recorded_at.0.to_be_bytes());
        put(&mut rest, &content.0);
        Self(Sha256::digest(linked).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let reason = || format!("`{text}` is not a hash, expected 64 hexadecimal digits");
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(reason());
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| reason())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The hash of the event at a position, in text `HASH@POSITION`: what an auditor keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Place in the log.
    pub position: Position,
    /// The hash there.
    pub hash: Hash,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.hash, self.position)
    }
}

impl FromStr for Mark {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((hash, position)) = text.split_once('@') else {
            return Err(format!(
                "`{text}` has no `@`, expected HASH@POSITION as `events verify` prints it"
            ));
        };
        let hash = hash.parse()?;
        let position = position.parse::<Position>().ok().filter(|p| *p > 0);
        let position =
            position.ok_or_else(|| format!("`{text}` ends without a position from 1 on"))?;
        Ok(Self { position, hash })
    }
}

/// What stays of an event that was dropped with its archived flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remains {
    /// Its place in the log.
    pub position: Position,
    /// When the log took it.
    pub recorded_at: Timestamp,
    /// The archived flow that it belonged to.
    pub flow_id: FlowId,
    /// Its place in that flow.
    pub version: Version,
    /// SHA-256 of all else that its append brought.
    pub body: Hash,
}

impl Remains {
    /// SHA-256 of all that its append brought. Cost: O(1).
    #[must_use]
    pub fn content(&self) -> Hash {
        self.body.content_of(self.flow_id, self.version)
    }
}

impl Row<'_> {
    /// SHA-256 of all that the row says but its position, the time at which it was recorded and its
    /// hash. Cost: O(size).
    pub(super) fn content(&self) -> Hash {
        self.body().content_of(self.flow, self.version)
    }

    /// SHA-256 of the content but flow and version. Numbers are big-endian; texts go in with their lengths, so that
    /// nothing can move from one into the next. Cost: O(size).
    fn body(&self) -> Hash {
        let mut fixed = [0u8; 16 * 2 + 8 + 4 + 2];
        let mut rest: &mut [u8] = &mut fixed;
        put(&mut rest, self.id.0.as_bytes());
        put(&mut rest, &self.time.0.to_be_bytes());
        put(&mut rest, &i32::from(self.schema_version).to_be_bytes());
        put(&mut rest, &[u8::from(self.causation.is_some())]);
        let causation = self.causation.map_or(Uuid::nil(), |id| id.0);
        put(&mut rest, causation.as_bytes());
        put(&mut rest, &[u8::from(self.trace.is_some())]);
        let mut digest = Sha256::new_with_prefix(fixed);
        for text in [
            self.kind,
            self.actor,
            self.correlation,
            self.trace.unwrap_or(""),
            self.data,
        ] {
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text.as_bytes());
        }
        Hash(digest.finalize().into())
    }

    /// The row as a link of the chain. Cost: O(size).
    pub(super) fn step(&self) -> Step {
        Step::Event {
            remains: self.remains(),
            stored: self.hash,
        }
    }

    /// What stays of it when it is dropped. Cost: O(size).
    pub(super) fn remains(&self) -> Remains {
        Remains {
            position: self.position,
            recorded_at: self.recorded_at,
            flow_id: self.flow,
            version: self.version,
            body: self.body(),
        }
    }
}

/// A place in the log, as the chain sees it.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// An event with the hash that is stored with it.
    Event {
        /// What it would leave behind.
        remains: Remains,
        /// `None`: it was imported without one, before the chain begins.
        stored: Option<Hash>,
    },
    /// An event that was dropped.
    Dropped(Remains),
    /// A row that cannot be believed; said elsewhere.
    Damaged(Position),
}

impl Step {
    /// Position of the event in the log.
    #[must_use]
    pub const fn position(&self) -> Position {
        match self {
            Self::Event { remains, .. } | Self::Dropped(remains) => remains.position,
            Self::Damaged(position) => *position,
        }
    }
}

/// The chain as far as it was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Followed {
    /// Position of its first event.
    pub from: Position,
    /// Where it ends.
    pub head: Mark,
}

/// Follows the chain along the log, place by place.
#[derive(Debug, Default)]
pub struct Chain {
    at: Position,
    /// Where it begins.
    from: Option<Position>,
    /// The hash at `at`; `None` before the chain, or where a damaged row has hidden it.
    hash: Option<Hash>,
    /// A row was damaged: the next stored hash is taken as it stands.
    is_hidden: bool,
    kept: Option<Mark>,
    kept_was_met: bool,
}

impl Chain {
    /// For a log that must have `kept`.
    #[must_use]
    pub fn with(kept: Option<Mark>) -> Self {
        Self {
            kept,
            ..Self::default()
        }
    }

    /// Goes on to the next place. Cost: O(1).
    ///
    /// # Errors
    /// What does not hold there. The chain goes on from the hash that is stored, so that one change is
    /// told once.
    pub fn step(&mut self, step: &Step) -> Result<(), String> {
        let position = step.position();
        if position <= self.at {
            return Err(format!(
                "`position` is {position}, expected {} or more",
                self.at + 1
            ));
        }
        let linked = self.link(step);
        let marked = self.compare_with_kept(position);
        linked.and(marked)
    }

    fn link(&mut self, step: &Step) -> Result<(), String> {
        let position = step.position();
        let before = self.at;
        self.at = position;
        let mut fault = Ok(());
        if self.from.is_some() && position > before + 1 {
            self.hash = None;
            self.is_hidden = true;
            fault = Err(format!(
                "nothing is known of positions {} to {}, so the hash chain is broken there",
                before + 1,
                position - 1
            ));
        }
        let previous = match (self.from, self.hash) {
            (None, _) if !self.is_hidden => Some(Hash::BEFORE_FIRST),
            (_, hash) => hash,
        };
        let linked = |r: &Remains| previous.map(|h| h.link(position, r.recorded_at, r.content()));
        match step {
            Step::Event { stored: None, .. } if self.from.is_none() => {}
            Step::Event {
                remains,
                stored: None,
            } => {
                self.hash = linked(remains);
                let from = self.from.unwrap_or_default();
                fault = Err(format!(
                    "it has no hash, though the hash chain begins at position {from}"
                ));
            }
            Step::Event {
                remains,
                stored: Some(stored),
            } => {
                if let Some(expected) = linked(remains).filter(|expected| expected != stored) {
                    fault = Err(format!(
                        "the hash is {expected}, the row says {stored}: the event was changed, or one \
                         before it"
                    ));
                }
                self.hash = Some(*stored);
                self.begins(position);
            }
            Step::Dropped(remains) => {
                self.hash = linked(remains);
                self.begins(position);
            }
            Step::Damaged(_) => {
                self.hash = None;
                self.is_hidden = true;
            }
        }
        fault
    }

    fn begins(&mut self, position: Position) {
        self.from.get_or_insert(position);
        self.is_hidden = self.hash.is_none();
    }

    fn compare_with_kept(&mut self, position: Position) -> Result<(), String> {
        let Some(kept) = self.kept.filter(|kept| kept.position == position) else {
            return Ok(());
        };
        let Some(hash) = self.hash else { return Ok(()) };
        self.kept_was_met = true;
        if hash == kept.hash {
            return Ok(());
        }
        Err(format!(
            "the hash is {hash}, the one that was kept is {}: the log was changed here or before",
            kept.hash
        ))
    }

    /// Ends at the last place.
    ///
    /// # Errors
    /// Why the hash that was kept cannot be compared.
    pub fn finish(&self) -> Result<(), String> {
        let Some(kept) = self.kept.filter(|_| !self.kept_was_met) else {
            return Ok(());
        };
        let position = kept.position;
        Err(match self.from {
            _ if position > self.at => format!(
                "the log ends at position {}, a hash was kept of position {position}: its end is missing",
                self.at
            ),
            None => format!("position {position} has no hash: the log has no hash chain yet"),
            Some(from) if position < from => {
                format!("position {position} has no hash: the hash chain begins at position {from}")
            }
            Some(_) => format!("the hash at position {position} cannot be computed"),
        })
    }

    /// The part of the log along which the chain was followed; `None` if there is no chain, or its end is hidden.
    #[must_use]
    pub fn followed(&self) -> Option<Followed> {
        Some(Followed {
            from: self.from?,
            head: Mark {
                position: self.at,
                hash: self.hash?,
            },
        })
    }
}
