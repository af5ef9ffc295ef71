//! The port to the store of leases.

use crate::application::ownership::Node;
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;

/// The leases cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database does not answer, or answers what cannot be.
    #[error("the leases of the nodes are not available: {0}")]
    Unavailable(String),
    /// The node was taken for gone, and another one that lives does otherwise about credentials: it must not take part.
    #[error("another node does not do as this one about credentials")]
    Differs {
        /// Whether this one asks for credentials.
        is_on: bool,
        /// Where the other one is; absent while it starts.
        other: Option<String>,
    },
    /// Servers run on the database, which must be left alone.
    #[error(
        "{servers} servers run on this database, which must be left alone meanwhile; stop them, or have them do it"
    )]
    InUse {
        /// Number of servers that live.
        servers: i64,
    },
}

/// A lease that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Below [`super::LEASES`].
    pub lease: u16,
    /// The token of the fence when it was taken.
    pub token: u64,
}

/// A node and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The node's id and address.
    pub node: Arc<Node>,
    /// Its leases, ascending.
    pub holds: Vec<Held>,
}

/// All nodes that live, as the database saw them in one beat.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sight {
    /// In order of their ids.
    pub nodes: Vec<Standing>,
}

impl Sight {
    /// Leases that each node should hold at most.
    #[must_use]
    pub fn fair_share(&self) -> usize {
        super::LEASES.div_ceil(self.nodes.len().max(1))
    }
}

/// The port to the store of leases. All times are those of this place.
#[async_trait]
pub trait Leases: Send + Sync + fmt::Debug + 'static {
    /// The node lives, for [`super::TTL`] from now, and relies on `held`; whatever else is stored as
    /// its own is given up. Takes free leases up to the fair share. A lease that is taken gets a
    /// higher token than any before, and from then on appends with a lower one are refused.
    /// One beat at a time takes effect, whole or not at all. A node that was taken for gone says again whether it asks
    /// for credentials.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: it may have taken effect. [`Error::Differs`]: the node must stop.
    async fn beat(&self, node: &Node, held: &[Held]) -> Result<Sight, Error>;

    /// The node stops: what it holds is free.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: then its leases end by themselves.
    async fn leave(&self, node: &Node) -> Result<(), Error>;
}
