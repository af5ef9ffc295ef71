//! Where a server under measurement keeps its data: a fresh folder, or a fresh database.

mod import;
mod sizes;

use crate::args::Args;
use crate::process;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection};
use std::path::PathBuf;
use std::str::FromStr;

/// A place that is empty when it is made, and goes when it is given back.
#[derive(Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    database: Option<Database>,
}

#[derive(Debug)]
struct Database {
    server: String,
    name: String,
    url: String,
}

impl Place {
    /// A fresh place; `name` tells it from others of the same run.
    pub(crate) async fn fresh(args: &Args, name: &str) -> Result<Self, String> {
        let folder = args.data_dir.join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let database = match &args.database_url {
            Some(server) => Some(Database::create(server, name).await?),
            None => None,
        };
        Ok(Self { folder, database })
    }

    /// What names it to the program.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let (name, value) = match &self.database {
            Some(database) => ("--database-url", database.url.clone()),
            None => ("--data-dir", self.folder.display().to_string()),
        };
        vec![name.to_owned(), value]
    }

    /// The folder, which also a place with a database has.
    pub(crate) fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// The URL of the database, if it is one.
    pub(crate) fn database(&self) -> Option<&str> {
        self.database.as_ref().map(|d| d.url.as_str())
    }

    /// The first process of its database, if that is on this machine.
    pub(crate) async fn postmaster(&self) -> Result<Option<u32>, String> {
        let Some(url) = self.database() else {
            return Ok(None);
        };
        let asked = async {
            let mut db = PgConnection::connect(url).await?;
            let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
                .fetch_one(&mut db)
                .await?;
            // Looked for while the connection is open: then the process is running.
            let found = u32::try_from(pid).ok().and_then(postmaster_of);
            db.close().await?;
            Ok(found)
        };
        asked.await.map_err(|e: sqlx::Error| e.to_string())
    }

    /// Removes it; no server may be running on it.
    pub(crate) async fn remove(self) -> Result<(), String> {
        let _ = std::fs::remove_dir_all(&self.folder);
        match self.database {
            Some(database) => database.remove().await,
            None => Ok(()),
        }
    }
}

/// Who started this process of Postgres; nothing if it is on another machine.
fn postmaster_of(backend: u32) -> Option<u32> {
    let name = std::fs::read_to_string(format!("/proc/{backend}/comm")).ok()?;
    match name.trim() {
        "postgres" => process::parent(backend).ok(),
        _ => None,
    }
}

impl Database {
    async fn create(server: &str, name: &str) -> Result<Self, String> {
        let name = format!("bench_{}_{name}", std::process::id()).replace('-', "_");
        let options = PgConnectOptions::from_str(server).map_err(|e| e.to_string())?;
        let made = Self {
            server: server.to_owned(),
            url: options.database(&name).to_url_lossy().to_string(),
            name,
        };
        made.admin(format!("CREATE DATABASE {}", made.name)).await?;
        Ok(made)
    }

    async fn remove(&self) -> Result<(), String> {
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        self.admin(sql).await
    }

    async fn admin(&self, sql: String) -> Result<(), String> {
        let done = async {
            let mut connection = PgConnection::connect(&self.server).await?;
            connection.execute(AssertSqlSafe(sql)).await?;
            connection.close().await
        };
        done.await.map_err(|e| format!("the database server: {e}"))
    }
}
