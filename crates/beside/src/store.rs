//! The type that all stores are built on: their error, time limits, transactions, and closing.

use std::time::Duration;

/// How long one order to a store may take: beyond it the connection is taken for dead.
pub const ORDER_WAIT: Duration = Duration::from_secs(10);

/// What macros name that are used in other crates.
#[doc(hidden)]
pub mod named {
    pub use sqlx::Error as DatabaseError;
    pub use taskledger_sql::{Error as SqlError, Tx, with_sources};
    pub use tokio::time::timeout;
    pub use tracing::warn;
}

/// Makes the type `Error` of a crate whose store keeps what the literal says.
#[macro_export]
macro_rules! store_error {
    ($what:literal) => {
        /// The store cannot do its work.
        #[derive(Debug)]
        pub enum Error {
            /// The database does not answer; retry.
            Database($crate::named::DatabaseError),
            /// No answer in time; retry.
            Late,
            /// A stored value cannot be read.
            Damaged(String),
        }

        impl Error {
            /// Whether a change was certainly not made: the database has said so, or was not reached. When its answer
            /// was lost, nobody knows.
            #[must_use]
            pub const fn is_undone(&self) -> bool {
                use $crate::named::DatabaseError;
                match self {
                    Self::Database(error) => matches!(
                        error,
                        DatabaseError::Database(_)
                            | DatabaseError::PoolTimedOut
                            | DatabaseError::PoolClosed
                    ),
                    Self::Late | Self::Damaged(_) => false,
                }
            }
        }

        impl ::std::fmt::Display for Error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    Self::Database(source) => {
                        write!(f, "the store of {} is not available: {source}", $what)
                    }
                    Self::Late => write!(
                        f,
                        "the store of {} gave no answer within {:?}",
                        $what,
                        $crate::ORDER_WAIT
                    ),
                    Self::Damaged(reason) => {
                        write!(f, "the store of {} is damaged: {reason}", $what)
                    }
                }
            }
        }

        impl ::std::error::Error for Error {
            fn source(&self) -> Option<&(dyn ::std::error::Error + 'static)> {
                match self {
                    Self::Database(source) => Some(source),
                    Self::Late | Self::Damaged(_) => None,
                }
            }
        }

        impl From<$crate::named::DatabaseError> for Error {
            fn from(source: $crate::named::DatabaseError) -> Self {
                Self::Database(source)
            }
        }

        impl From<$crate::named::SqlError> for Error {
            fn from(error: $crate::named::SqlError) -> Self {
                match error {
                    $crate::named::SqlError::Unavailable(source) => Self::Database(source),
                    $crate::named::SqlError::Damaged(reason) => Self::Damaged(reason),
                    // None of its statements runs on a connection of this kind.
                    other @ $crate::named::SqlError::Sqlite(_) => {
                        Self::Damaged($crate::named::with_sources(&other))
                    }
                }
            }
        }
    };
}

/// Gives a store with a member `connections` what all have, for its own crate or, with `pub`, for others:
/// `order`, `read` and `close`. `Error` is that of [`store_error!`](crate::store_error).
#[macro_export]
macro_rules! store_shell {
    ($vis:vis $store:ident, $what:literal) => {
        impl ::std::fmt::Debug for $store {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($store)).finish_non_exhaustive()
            }
        }

        impl $store {
            /// Runs one order to its end or not at all, within a few seconds.
            ///
            /// # Errors
            /// Those of the order, and [`Error::Late`].
            $vis async fn order<T>(
                &self,
                work: impl ::std::future::Future<Output = Result<T, Error>>,
            ) -> Result<T, Error> {
                let done = $crate::named::timeout($crate::ORDER_WAIT, work).await;
                done.map_err(|_| Error::Late)?
            }

            /// A transaction that reads one consistent state.
            ///
            /// # Errors
            /// [`Error::Database`].
            $vis async fn read(&self) -> Result<$crate::named::Tx<'static>, Error> {
                Ok(self.connections.read().await?)
            }

            /// Closes all connections.
            pub async fn close(&self) {
                if !self.connections.close().await {
                    $crate::named::warn!(
                        "the connections to the store of {} were not closed in time",
                        $what
                    );
                }
            }
        }
    };
}

/// The same for stores whose changes a power cut must not undo: `write`.
#[macro_export]
macro_rules! store_write {
    ($vis:vis $store:ident) => {
        impl $store {
            /// A transaction that changes something, after all that began before it.
            ///
            /// # Errors
            /// [`Error::Database`].
            $vis async fn write(&self) -> Result<$crate::named::Tx<'static>, Error> {
                Ok(self.connections.write_in_turn().await?)
            }
        }
    };
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macro is for public modules")]
mod tests {
    use std::error::Error as _;

    crate::store_error!("stamps");

    #[test]
    fn errors_say_which_store_it_is_and_keep_their_cause() {
        let shown = |error: Error| (error.to_string(), error.source().is_some());
        let database = Error::from(sqlx::Error::PoolTimedOut);
        let (text, has_source) = shown(database);
        assert!(
            text.starts_with("the store of stamps is not available: "),
            "{text}"
        );
        assert!(has_source);
        let late = "the store of stamps gave no answer within 10s".to_owned();
        assert_eq!(shown(Error::Late), (late, false));
        let damaged = taskledger_sql::Error::Damaged("a hole".to_owned());
        let told = "the store of stamps is damaged: a hole".to_owned();
        assert_eq!(shown(damaged.into()), (told, false));
    }

    #[test]
    fn a_change_is_undone_for_certain_unless_its_answer_was_lost() {
        let lost = sqlx::Error::Io(std::io::ErrorKind::BrokenPipe.into());
        for (error, is_undone) in [
            (Error::from(sqlx::Error::PoolTimedOut), true),
            (Error::from(lost), false),
            (Error::Late, false),
            (Error::Damaged(String::new()), false),
        ] {
            assert_eq!(error.is_undone(), is_undone, "{error}");
        }
    }
}
