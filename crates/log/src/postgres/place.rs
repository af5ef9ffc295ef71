//! Names of databases, in words for people.

use sqlx::postgres::PgConnectOptions;

/// Host, port and database in words, without user and password.
pub(super) fn place(connect: &PgConnectOptions) -> String {
    let database = connect
        .get_database()
        .unwrap_or_else(|| connect.get_username());
    match connect.get_socket() {
        Some(folder) => format!("`{database}` at socket `{}`", folder.display()),
        None => format!(
            "`{database}` at `{}:{}`",
            connect.get_host(),
            connect.get_port()
        ),
    }
}
