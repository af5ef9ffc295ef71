//! Filling a place with a log that is made up, through `taskledger events import`.

use super::Place;
use crate::history::Log;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Written at once.
const WRITE_BYTES: usize = 1024 * 1024;

impl Place {
    /// Imports what `fill` writes; gives how many seconds it took. No server may be running on the place.
    pub(crate) fn import(
        &self,
        program: &Path,
        fill: impl FnOnce(&mut Log<'_>) -> io::Result<()> + Send,
    ) -> Result<f64, String> {
        let began = Instant::now();
        let mut child = Command::new(program)
            .args(["events", "import", "-", "--allow-unterminated"])
            .args(self.arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let input = child.stdin.take().ok_or("the import takes no input")?;
        let (written, output) = std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let mut out = BufWriter::with_capacity(WRITE_BYTES, input);
                fill(&mut Log::new(&mut out))?;
                out.flush()
            });
            (writer.join(), child.wait_with_output())
        });
        let output = output.map_err(|e| e.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("the import failed: {said}"));
        }
        match written {
            Ok(Ok(())) => Ok(began.elapsed().as_secs_f64()),
            Ok(Err(error)) => Err(format!("the import: {error}")),
            Err(_) => Err("the writer of the log died".to_owned()),
        }
    }
}
