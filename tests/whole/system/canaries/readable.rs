//! Secrets that are planted, and everything in which they must not be found.

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};
use std::fmt::Write as _;
use std::path::Path;
use taskledger_testkit::server::Folder;

/// Bytes on each side of what was found that a failure shows.
const SHOWN: usize = 80;

/// Secrets, in the forms in which they might be repeated.
#[derive(Default)]
pub(super) struct Canaries(Vec<(String, String)>);

impl Canaries {
    /// From now on nothing may hold this text: as it is, in JSON, in hexadecimal, in base64 wherever it stands.
    pub(super) fn plant(&mut self, name: &str, text: &str) {
        assert!(
            text.len() >= 16,
            "{text} would be found in what is no secret"
        );
        let name = if name.is_empty() { text } else { name };
        let json = serde_json::Value::from(text).to_string();
        let mut forms = vec![text.to_owned(), json[1..json.len() - 1].to_owned()];
        forms.push(text.bytes().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        }));
        for before in 0..3 {
            let bytes = [&[0; 3][..before], text.as_bytes()].concat();
            // Characters that hold bits of nothing else.
            let own = (8 * before).div_ceil(6)..8 * bytes.len() / 6;
            forms.push(STANDARD_NO_PAD.encode(&bytes)[own.clone()].to_owned());
            forms.push(URL_SAFE_NO_PAD.encode(&bytes)[own].to_owned());
        }
        self.0
            .extend(forms.into_iter().map(|form| (name.to_owned(), form)));
    }
}

/// What was read, and where.
#[derive(Default)]
pub(super) struct Collected(Vec<(String, Vec<u8>)>);

impl Collected {
    pub(super) fn add(&mut self, place: &str, bytes: &[u8]) {
        self.0.push((place.to_owned(), bytes.to_vec()));
    }

    /// Every file below a folder, if there is one.
    pub(super) fn add_files(&mut self, place: &str, folder: &Path) {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.add_files(place, &path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                self.add(&format!("{place}: {}", path.display()), &bytes);
            }
        }
    }

    /// Every row of every table, if there is a database.
    pub(super) async fn add_database(&mut self, folder: &Folder) {
        let Some(options) = folder.options() else {
            return;
        };
        let mut connection = options.connect().await.unwrap();
        let tables = sqlx::query(
            "SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables
            WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')",
        );
        let tables = tables.fetch_all(&mut connection).await.unwrap();
        assert!(tables.len() > 10, "{} tables", tables.len());
        for table in tables {
            let table: String = table.get(0);
            let rows = AssertSqlSafe(format!("SELECT t::text FROM {table} AS t"));
            let rows = sqlx::query(rows).fetch_all(&mut connection).await.unwrap();
            for row in rows {
                let row: String = row.get(0);
                self.add(&format!("table {table}"), row.as_bytes());
            }
        }
        connection.close().await.unwrap();
    }

    /// None of the secrets is in any of it.
    pub(super) fn assert_without(&self, canaries: &Canaries) {
        let (names, forms): (Vec<_>, Vec<_>) = canaries.0.iter().cloned().unzip();
        assert!(self.0.len() > 100, "{} places", self.0.len());
        let forms = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(&forms);
        let forms = forms.unwrap();
        let mut leaks = Vec::new();
        for (place, bytes) in &self.0 {
            for found in forms.find_iter(bytes) {
                let name = &names[found.pattern().as_usize()];
                let around =
                    found.start().saturating_sub(SHOWN)..(found.end() + SHOWN).min(bytes.len());
                let around = String::from_utf8_lossy(&bytes[around]);
                leaks.push(format!("{name} in {place}: ..{around}.."));
            }
        }
        assert!(
            leaks.is_empty(),
            "{} leaks:\n{}",
            leaks.len(),
            leaks.join("\n")
        );
    }
}
