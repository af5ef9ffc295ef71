//! The owner of a thing that is stored under a name.

use std::sync::Arc;

/// The owner of a stored thing: a user of a tenant, or nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Name of the tenant.
    pub tenant: Arc<str>,
    /// The user; `None`: nobody, as without authentication.
    pub user: Option<Arc<str>>,
}

impl Owner {
    /// The user as a column. Empty stands for nobody: no user has an empty name.
    #[must_use]
    pub fn column(&self) -> Arc<str> {
        self.user.clone().unwrap_or_else(|| Arc::from(""))
    }
}
