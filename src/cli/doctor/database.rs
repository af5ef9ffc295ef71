//! Checks the database of a server: whether it answers, and whether the server's user has the rights that a server
//! needs.

use super::{Finding, Verdict, storage};
use crate::server::Database;
use crate::store::postgres::OpenError;
use crate::store::postgres::rights::Rights;
use taskledger_cli::CliError;

const OF: &str = "database";

/// Looks at the database, and says which statements give its user what is missing.
pub(super) async fn finding(database: &Database) -> Finding {
    match database.rights(storage::clock()).await {
        Ok(rights) => of_rights(&rights),
        Err(error) => {
            let advice = match &error {
                OpenError::Unreachable { .. } => {
                    "check the URL, its user and its password, and that the database exists and accepts connections \
                     from here"
                }
                OpenError::Newer { .. } => "use the newer program",
                OpenError::Unfit { .. } => "give --database-url a database that can hold a log",
                OpenError::NoLog { .. }
                | OpenError::Forbidden { .. }
                | OpenError::Locked { .. }
                | OpenError::Unusable { .. } => "see what the database says",
            };
            Finding::new(
                OF,
                Verdict::Bad,
                CliError::failed(&error).to_string(),
                advice,
            )
        }
    }
}

fn of_rights(rights: &Rights) -> Finding {
    let user = &rights.user;
    if rights.missing.is_empty() {
        return Finding::good(
            OF,
            match rights.has_log {
                true => format!("it answers, and user {user} has the rights that a server needs"),
                false => format!(
                    "it answers and has no log yet; `serve` makes its tables as user {user}"
                ),
            },
        );
    }
    let what: Vec<&str> = rights.missing.iter().map(|it| &*it.what).collect();
    let remedies: Vec<&str> = rights.missing.iter().map(|it| &*it.remedy).collect();
    let blocks = rights.missing.iter().any(|it| it.blocks);
    let (verdict, why) = match blocks {
        true => (Verdict::Bad, ""),
        false => (
            Verdict::Warning,
            ", without which no tables can be made anew",
        ),
    };
    Finding::new(
        OF,
        verdict,
        format!(
            "it answers, but user {user} may not {}{why}",
            what.join(", nor ")
        ),
        format!(
            "as the owner of the database or of what is named:\n{}",
            remedies.join("\n")
        ),
    )
}
