//! A client that reads a stream, and what it has seen so far.

use crate::clients::others;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// An event as a client saw it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Seen {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) data: String,
}

/// One line of a client.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Opened { open: bool },
    Broken { broken: String },
    Event(Seen),
}

/// What a client has told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) openings: usize,
    pub(crate) breaks: Vec<String>,
    pub(crate) events: Vec<Seen>,
}

/// Where a client's lines are gathered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Told>>);

impl Notes {
    /// Takes a line.
    pub(crate) fn take(&self, line: &str) {
        let line = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let mut told = self.0.lock().unwrap();
        match line {
            Line::Opened { open } => told.openings += usize::from(open),
            Line::Broken { broken } => told.breaks.push(broken),
            Line::Event(seen) => told.events.push(seen),
        }
    }

    /// Looks at what was told so far.
    pub(crate) fn look<T>(&self, at: impl FnOnce(&Told) -> T) -> T {
        at(&self.0.lock().unwrap())
    }
}

/// A client at work; ended, with all that it has started, when it is dropped.
pub(crate) struct Reader {
    pub(crate) name: &'static str,
    pub(crate) notes: Notes,
    child: Child,
}

impl Reader {
    /// The package `eventsource` of Node.js, with a token if one is given.
    pub(crate) fn node(url: &str, names: &[&str], token: Option<&str>) -> Self {
        let mut command = others::node("stream.cjs");
        command.arg(url).args(names);
        command.envs(token.map(|token| ("TOKEN", token)));
        Self::told_by_lines("eventsource of npm", command)
    }

    /// The package `sseclient-py` of Python, with a token if one is given.
    pub(crate) fn python(url: &str, token: Option<&str>) -> Self {
        let mut command = others::python("stream.py");
        command.arg(url);
        command.envs(token.map(|token| ("TOKEN", token)));
        Self::told_by_lines("sseclient-py of PyPI", command)
    }

    /// The package `ws` of Node.js, which makes these calls on a socket.
    pub(crate) fn ws(url: &str, calls: &[String], token: Option<&str>) -> Self {
        let mut command = others::node("calls.cjs");
        command.arg(url).args(calls);
        command.envs(token.map(|token| ("TOKEN", token)));
        Self::told_by_lines("ws of npm", command)
    }

    /// The package `websockets` of Python, which makes these calls on a socket.
    pub(crate) fn websockets(url: &str, calls: &[String], token: Option<&str>) -> Self {
        let mut command = others::python("calls.py");
        command.arg(url).args(calls);
        command.envs(token.map(|token| ("TOKEN", token)));
        Self::told_by_lines("websockets of PyPI", command)
    }

    fn told_by_lines(name: &'static str, mut command: Command) -> Self {
        command.stdout(Stdio::piped());
        let mut reader = Self::start(name, command, Notes::default());
        let mut lines = BufReader::new(reader.child.stdout.take().unwrap()).lines();
        let notes = reader.notes.clone();
        // Ends with the process, whose output it is.
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                notes.take(&line);
            }
        });
        reader
    }

    /// Starts a client whose lines arrive in `notes` by another way.
    pub(crate) fn start(name: &'static str, mut command: Command, notes: Notes) -> Self {
        let child = command
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        Self { name, notes, child }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Gone already when there is no id.
        if let Some(id) = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()))
        {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}
