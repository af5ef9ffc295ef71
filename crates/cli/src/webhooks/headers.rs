//! Headers that a webhook sends along.

use crate::CliError;
use crate::input::read_text;
use serde_json::{Map, Value};

#[derive(Debug, Clone, clap::Args)]
pub(super) struct Headers {
    /// A header to send along; others on this machine can see it here, so prefer a file for secrets
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// A file of such headers, one a line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    header_file: Option<String>,
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        // What is wrong may be a secret.
        Some(_) | None => Err("expected `Name: value`".to_owned()),
    }
}

impl Headers {
    /// The parameter; none when no header was given.
    pub(super) fn params(self) -> Result<Option<Map<String, Value>>, CliError> {
        let mut headers = self.header;
        if let Some(file) = &self.header_file {
            let wrong =
                |reason: &str| CliError::Usage(format!("--header-file: `{file}`: {reason}"));
            let text = read_text(file).map_err(|error| wrong(&error.to_string()))?;
            for (number, line) in text.lines().enumerate() {
                if line.trim().is_empty() {
                    continue;
                }
                let parsed = header(line)
                    .map_err(|reason| wrong(&format!("line {}: {reason}", number + 1)))?;
                headers.push(parsed);
            }
        }
        let mut map = Map::new();
        for (name, value) in headers {
            if map.insert(name.clone(), value.into()).is_some() {
                return Err(CliError::Usage(format!("header `{name}` is given twice")));
            }
        }
        Ok((!map.is_empty()).then_some(map))
    }
}
