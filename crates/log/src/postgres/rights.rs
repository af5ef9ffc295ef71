//! Compares the rights of a database user with those that a server needs. Looks and changes nothing.

use super::migrations::Steps;
use super::open::{self, OpenError};
use super::options::Options;
use sqlx::{Connection as _, PgConnection};
use std::collections::BTreeMap;

/// The schema of the log, which also says what steps were taken.
const LOG_SCHEMA: &str = "taskledger";

/// The data that a server keeps in a database.
#[derive(Debug, Clone, Copy)]
pub struct Needs<'a> {
    /// The steps of all schemas that are made by steps.
    pub steps: &'a [Steps],
    /// A schema that servers make, rename and drop themselves.
    pub own: &'a str,
}

/// The result of the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// The user who looked, as a name in SQL.
    pub user: String,
    /// Whether there is a log already.
    pub has_log: bool,
    /// What is missing; empty: a server can start.
    pub missing: Vec<Missing>,
}

/// A right that a server needs and the user does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What cannot be done, such as ``read and write the tables of `taskledger` ``.
    pub what: String,
    /// The statement that grants it, or the command that makes it unnecessary.
    pub remedy: String,
    /// A server cannot start without it; else it cannot rebuild its tables.
    pub blocks: bool,
}

/// A schema that is there.
#[derive(Debug)]
struct Schema {
    name: String,
    is_used: bool,
    is_owned: bool,
}

/// Compares the rights of the user of `options` with what a server needs.
///
/// # Errors
/// [`OpenError`]: the database cannot be reached, cannot hold a log, or has one of a newer program.
pub async fn look(options: &Options, needs: Needs<'_>) -> Result<Rights, OpenError> {
    let place = open::place(&options.connect);
    let mut connection = open::connect(options)
        .await
        .map_err(|error| OpenError::unreachable(&place, &error))?;
    open::check_server(&mut connection, &place).await?;
    let found = compared(&mut connection, &place, needs).await;
    // Nothing was written; a farewell that fails changes nothing.
    let _ = connection.close().await;
    found?.map_err(|source| OpenError::Unusable { place, source })
}

async fn compared(
    connection: &mut PgConnection,
    place: &str,
    needs: Needs<'_>,
) -> Result<Result<Rights, sqlx::Error>, OpenError> {
    let found = async {
        let (user, database, can_create): (String, String, bool) = sqlx::query_as(
            "SELECT quote_ident(current_user), quote_ident(current_database()),
                    has_database_privilege(current_database(), 'CREATE')",
        )
        .fetch_one(&mut *connection)
        .await?;
        let mut names: Vec<String> = needs.steps.iter().map(schema_of).collect();
        names.push(needs.own.to_owned());
        let schemas = schemas(connection, &names).await?;
        let tables = lacking(connection, &names).await?;
        let taken = taken(connection, &schemas, &tables).await?;
        Ok::<_, sqlx::Error>((user, database, can_create, names, schemas, tables, taken))
    };
    let (user, database, can_create, names, schemas, tables, taken) = match found.await {
        Ok(found) => found,
        Err(error) => return Ok(Err(error)),
    };
    let mut missing = Vec::new();
    if !can_create {
        missing.push(Missing {
            what: format!("create schemas in the database {database}"),
            remedy: format!("GRANT CREATE ON DATABASE {database} TO {user};"),
            blocks: names
                .iter()
                .any(|name| !schemas.iter().any(|schema| schema.name == *name)),
        });
    }
    for schema in &schemas {
        let name = &schema.name;
        if name == needs.own && !schema.is_owned {
            // A rebuild renames and drops it.
            missing.push(Missing {
                what: format!("own the schema {name}"),
                remedy: format!("ALTER SCHEMA {name} OWNER TO {user};"),
                blocks: true,
            });
        } else if !schema.is_used {
            missing.push(Missing {
                what: format!("use the schema {name}"),
                remedy: format!("GRANT USAGE ON SCHEMA {name} TO {user};"),
                blocks: true,
            });
        }
        let lacks = tables.get(name).copied().unwrap_or_default();
        if lacks.tables {
            missing.push(Missing {
                what: format!("read and write the tables of {name}"),
                remedy: format!(
                    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {user};"
                ),
                blocks: true,
            });
        }
        if lacks.sequences {
            missing.push(Missing {
                what: format!("count with the sequences of {name}"),
                remedy: format!("GRANT USAGE ON ALL SEQUENCES IN SCHEMA {name} TO {user};"),
                blocks: true,
            });
        }
    }
    let has_log = schemas.iter().any(|schema| schema.name == LOG_SCHEMA);
    let owns = |name: &str| schemas.iter().any(|it| it.name == name && it.is_owned);
    // What steps were taken is not known to who may not read it; then that is missing already.
    for steps in needs.steps.iter().filter(|_| taken.is_some()) {
        let (at, known) = (
            taken.as_ref().and_then(|all| all.get(steps.purpose)),
            steps.steps.len(),
        );
        let (at, known) = (at.copied().unwrap_or(0), known as i64);
        if at > known {
            return Err(OpenError::Newer {
                place: place.to_owned(),
                found: at,
                known,
            });
        }
        if at < known && !owns(LOG_SCHEMA) {
            missing.push(Missing {
                what: format!("bring the tables of `{}` up to date", steps.purpose),
                remedy: "`taskledger migrate` as the owner of the schemas, then what `taskledger migrate --help` \
                         grants."
                    .to_owned(),
                blocks: true,
            });
            break;
        }
    }
    Ok(Ok(Rights {
        user,
        has_log,
        missing,
    }))
}

/// The schema that steps make.
fn schema_of(steps: &Steps) -> String {
    match steps.purpose {
        "log" | "nodes" => LOG_SCHEMA.to_owned(),
        purpose => format!("{LOG_SCHEMA}_{purpose}"),
    }
}

async fn schemas(
    connection: &mut PgConnection,
    names: &[String],
) -> Result<Vec<Schema>, sqlx::Error> {
    let rows: Vec<(String, bool, bool)> = sqlx::query_as(
        "SELECT nspname::text, has_schema_privilege(oid, 'USAGE'),
                pg_has_role(nspowner, 'USAGE')
         FROM pg_namespace
         WHERE nspname = ANY($1)
         ORDER BY nspname",
    )
    .bind(names)
    .fetch_all(connection)
    .await?;
    let schemas = rows.into_iter().map(|(name, is_used, is_owned)| Schema {
        name,
        is_used,
        is_owned,
    });
    Ok(schemas.collect())
}

/// What is missing in a schema.
#[derive(Debug, Clone, Copy, Default)]
struct Lacks {
    tables: bool,
    sequences: bool,
}

/// The schemas with a table or sequence that the user cannot use fully.
async fn lacking(
    connection: &mut PgConnection,
    names: &[String],
) -> Result<BTreeMap<String, Lacks>, sqlx::Error> {
    let rows: Vec<(String, bool, bool)> = sqlx::query_as(
        "SELECT n.nspname::text,
                bool_or(c.relkind <> 'S' AND NOT (
                    has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
                    AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))),
                bool_or(CASE WHEN c.relkind = 'S' THEN NOT has_sequence_privilege(c.oid, 'USAGE')
                        ELSE false END)
         FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = ANY($1) AND c.relkind IN ('r', 'p', 'S')
         GROUP BY n.nspname",
    )
    .bind(names)
    .fetch_all(connection)
    .await?;
    let lacks = rows
        .into_iter()
        .map(|(name, tables, sequences)| (name, Lacks { tables, sequences }));
    Ok(lacks.collect())
}

/// How many steps were taken, by purpose; `None`: there are none, or they cannot be read.
async fn taken(
    connection: &mut PgConnection,
    schemas: &[Schema],
    tables: &BTreeMap<String, Lacks>,
) -> Result<Option<BTreeMap<String, i64>>, sqlx::Error> {
    let log = schemas.iter().find(|schema| schema.name == LOG_SCHEMA);
    let is_readable = tables.get(LOG_SCHEMA).is_some_and(|lacks| !lacks.tables);
    if !(log.is_some_and(|schema| schema.is_used) && is_readable) {
        return Ok(None);
    }
    let rows: Vec<(String, i64)> =
        sqlx::query_as("SELECT purpose, max(number) FROM taskledger.schema_steps GROUP BY purpose")
            .fetch_all(connection)
            .await?;
    Ok(Some(rows.into_iter().collect()))
}
