//! Whose a flow was in the end.

use serde::{Deserialize, Serialize};

/// Whose a flow was when it was archived.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastOwner {
    /// The user of its root; `None`: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
}

impl LastOwner {
    /// This user, or nobody.
    #[must_use]
    pub fn of(user: Option<&str>) -> Self {
        Self {
            user_id: user.map(str::to_owned),
        }
    }
}
