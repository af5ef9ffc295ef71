//! Whether a command begins its flow, and who chose the flow's id.

/// Whether a command begins its flow, and who chose the flow's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// The flow is stored, or is not there.
    No,
    /// A fresh random id: nothing of the flow can be stored, so nothing is loaded.
    Minted,
    /// The caller's id: it is claimed like that of any other task. Nothing is expected to be stored of the flow, so
    /// nothing is loaded: the append is refused if something is.
    Chosen,
    /// The same, once an append has met something: what is stored is loaded first.
    Contested,
}

impl Begins {
    /// Whether the id of the flow's root has to be claimed.
    pub(super) const fn claims(self) -> bool {
        match self {
            Self::No | Self::Minted => false,
            Self::Chosen | Self::Contested => true,
        }
    }
}
