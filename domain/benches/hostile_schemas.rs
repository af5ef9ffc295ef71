//! What each hostile schema costs: compiling it and checking its inputs.
//!
//! `cargo bench -p taskledger-domain --bench hostile_schemas` prints, for each attack, the processor
//! time of the slowest of several rounds, by how much the peak of resident memory rose in them, and
//! how it ended. The claim is less than [`AIM_MS`] each and flat memory; a row that is not is marked.
//! An argument picks the attacks whose names contain it.

use std::fmt::Write as _;
use std::sync::LazyLock;
use std::time::Instant;
use taskledger_domain::task::inputs;
use taskledger_domain::testing::hostile::{Attack, attacks};

/// Milliseconds that one attack may cost in the release profile.
const AIM_MS: f64 = 50.0;
/// MiB by which the peak of memory may rise: a compiled schema is a few.
const AIM_MIB: f64 = 16.0;
/// Rounds of each attack; the slowest counts.
const ROUNDS: usize = 5;

fn main() {
    let wanted = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    println!(
        "{:46} {:>10} {:>10} {:>9}  ends with",
        "attack", "compile ms", "check ms", "peak MiB"
    );
    let mut over = 0;
    for attack in attacks() {
        if wanted.as_ref().is_none_or(|w| attack.name.contains(w)) {
            over += usize::from(line(&attack));
        }
    }
    println!("{over} over {AIM_MS} ms or {AIM_MIB} MiB");
}

/// Measures one attack; whether it costs too much.
fn line(attack: &Attack) -> bool {
    let (mut compile_ms, mut check_ms, mut whole_ms) = (0.0_f64, 0.0_f64, 0.0_f64);
    let mut end = String::new();
    forget_peak();
    let before = status_mib("VmRSS:");
    for _ in 0..ROUNDS {
        let start = now_ms();
        let compiled = inputs::compile(&attack.schema);
        let compiled_ms = now_ms() - start;
        let outcome = compiled.and_then(|schema| schema.check(&attack.inputs));
        let both_ms = now_ms() - start;
        compile_ms = compile_ms.max(compiled_ms);
        check_ms = check_ms.max(both_ms - compiled_ms);
        whole_ms = whole_ms.max(both_ms);
        end = match outcome {
            Ok(()) => "accepted".to_owned(),
            Err(faults) => match faults.as_slice() {
                [only] => only.reason.clone(),
                several => format!("{} violations", several.len()),
            },
        };
    }
    let peak = status_mib("VmHWM:") - before;
    let mut text = format!(
        "{:46} {compile_ms:>10.2} {check_ms:>10.2} {peak:>9.1}  {end}",
        attack.name
    );
    let over = whole_ms > AIM_MS || peak > AIM_MIB;
    if over {
        write!(text, "  <- too much").expect("writing to a string does not fail");
    }
    println!("{text}");
    over
}

/// Time on the processor where Linux tells it, so that a busy machine changes little; else time.
fn now_ms() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    nanos.map_or_else(|| START.elapsed().as_secs_f64() * 1000.0, |n| n / 1e6)
}

/// Makes Linux measure the peak from now on; elsewhere nothing is measured.
fn forget_peak() {
    // Not permitted everywhere; then the peaks of earlier rows stay in the figures.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// A line of `/proc/self/status`, in MiB; 0 where there is none.
fn status_mib(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix(name));
    let kib = line.and_then(|l| l.trim().split(' ').next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
