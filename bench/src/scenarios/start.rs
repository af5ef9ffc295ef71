//! From the start of the process to its answers.

use super::create::CATCH_UP_PATIENCE;
use super::long_log::{self, LongLog};
use crate::args::Args;
use crate::client::Client;
use crate::nodes::Nodes;
use crate::place::Place;
use crate::report::{Figures, Report};
use crate::server::Server;
use serde_json::json;
use std::time::Instant;

/// On an empty store, and memory when idle.
pub(crate) async fn start(args: &Args, report: &mut Report) -> Result<(), String> {
    let (mut starts, mut memory, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..args.rounds() {
        let place = Place::fresh(args, "start").await?;
        let server = Server::start(&args.program, &place).await?;
        starts.push(server.started_in.as_secs_f64() * 1e3);
        memory.push(server.memory_mb()?);
        own.push(server.own_memory_mb()?);
        server.stop();
        place.remove().await?;
    }
    report.row("start to first answer, empty store", "ms", &starts);
    report.row("idle memory, empty store", "MB", &memory);
    report.row(
        "idle memory, empty store, without pages of files",
        "MB",
        &own,
    );
    Ok(())
}

/// How the server before ended.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Before {
    Stopped,
    Killed,
}

/// On a long log, whose files the system has forgotten (those of a folder; a database keeps its memory).
pub(crate) async fn cold_start(
    args: &Args,
    long_log: &mut LongLog,
    report: &mut Report,
) -> Result<(), String> {
    let mut place = long_log.take(args, report).await?;
    let name = long_log::name(long_log::tasks(args));
    for before in [Before::Stopped, Before::Killed] {
        let mut figures = Figures::default();
        // The first round is behind something else than the others.
        for round in 0..=args.rounds() {
            place.forget_files()?;
            let began = Instant::now();
            let nodes = Nodes::start_on(args, place, &[]).await?;
            let started = nodes.first().started_in.as_secs_f64();
            Client::connect(&nodes.first().address)
                .await?
                .insist("tasks.list", &json!({}), CATCH_UP_PATIENCE)
                .await?;
            let listed = began.elapsed().as_secs_f64();
            if round > 0 {
                figures.add("to the first answer", "ms", started * 1e3);
                // Several nodes are given time to settle, which is not theirs.
                if args.nodes == 1 {
                    figures.add("to the first page of tasks.list", "ms", listed * 1e3);
                }
                figures.add("memory of the server", "MB", nodes.memory_mb()?);
            }
            place = match before {
                Before::Stopped => nodes.end().await?,
                Before::Killed => {
                    let mut client = Client::connect(&nodes.first().address).await?;
                    let written = super::create::measured_task();
                    client.call("tasks.create", &written).await?;
                    nodes.kill()
                }
            };
        }
        let how = match before {
            Before::Stopped => format!("start with {name}"),
            Before::Killed => format!("start with {name} after a kill"),
        };
        report.figures(&how, figures);
    }
    long_log.give_back(place);
    Ok(())
}
