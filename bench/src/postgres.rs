//! A throwaway Postgres: this program is started once more below the script that starts one, and
//! removes it behind it.

use crate::args::{Args, Store};
use std::path::Path;
use std::process::{Command, ExitCode};

/// Where the script leaves the address of the server.
const ADDRESS: &str = "TASKLEDGER_TEST_POSTGRES";
const SCRIPT: &str = "../.ci/with-postgres";

/// Sees to it that a database is named if one is needed: from what the script says, or by running the
/// script; then gives how that ended.
pub(crate) fn provide(args: &mut Args) -> Result<Option<ExitCode>, String> {
    match (args.store, &args.database_url) {
        (Store::Sqlite, None) => return Ok(None),
        (Store::Sqlite | Store::Postgres, Some(_)) => {
            args.store = Store::Postgres;
            return Ok(None);
        }
        (Store::Postgres, None) => {}
    }
    if let Ok(address) = std::env::var(ADDRESS) {
        args.database_url = Some(address);
        return Ok(None);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(SCRIPT);
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let status = Command::new(&script)
        .arg("--durable")
        .arg(program)
        .args(std::env::args_os().skip(1))
        .status()
        .map_err(|e| {
            format!(
                "{}: {e}; name a server with --database-url",
                script.display()
            )
        })?;
    Ok(Some(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }))
}
