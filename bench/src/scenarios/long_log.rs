//! The long log, which several scenarios share: made once in a run, when the first of them needs it.

use super::create::caught_up;
use crate::args::Args;
use crate::history::{BLOCK_TASKS, events_of};
use crate::nodes::Nodes;
use crate::place::Place;
use crate::report::{Report, number};
use std::time::Instant;

/// The place with the log, while no server uses it.
#[derive(Debug, Default)]
pub(crate) struct LongLog {
    place: Option<Place>,
}

/// Tasks of the long log.
pub(crate) fn tasks(args: &Args) -> u64 {
    args.long_log_tasks() / BLOCK_TASKS * BLOCK_TASKS
}

/// As it is named in rows.
pub(crate) fn name(tasks: u64) -> String {
    format!("{} tasks", number(tasks as f64))
}

/// What it took to make a log and the read models behind it.
pub(crate) struct Made {
    tasks: u64,
    import_seconds: f64,
    start_seconds: f64,
}

/// Servers on a fresh place with so many tasks, whose read models are made.
pub(crate) async fn filled(args: &Args, place: &str, tasks: u64) -> Result<(Nodes, Made), String> {
    let place = Place::fresh(args, place).await?;
    let import_seconds = place.import(&args.program, |log| log.blocks(tasks))?;
    let began = Instant::now();
    let nodes = Nodes::start_on(args, place, &[]).await?;
    caught_up(&nodes).await?;
    let made = Made {
        tasks,
        import_seconds,
        start_seconds: began.elapsed().as_secs_f64(),
    };
    Ok((nodes, made))
}

impl Made {
    /// Says it, with what it takes on the disk and in the memory of these servers.
    pub(crate) async fn tell(&self, nodes: &Nodes, report: &mut Report) -> Result<(), String> {
        let (events, tasks) = (events_of(self.tasks) as f64, self.tasks as f64);
        let (name, sizes) = (name(self.tasks), nodes.place().sizes().await?);
        for (figure, unit, value) in [
            (
                format!("import, {name}: rate"),
                "events/s",
                events / self.import_seconds,
            ),
            (
                format!("first start with {name}: events shown by new read models"),
                "1/s",
                events / self.start_seconds,
            ),
            (
                format!("import, {name}: log bytes per task"),
                "B",
                sizes.log / tasks,
            ),
            (
                format!("import, {name}: read model bytes per task"),
                "B",
                sizes.read_models / tasks,
            ),
            (
                format!("first start with {name}: memory of the server, most"),
                "MB",
                nodes.peak_memory_mb()?,
            ),
        ] {
            report.row(figure, unit, &[value]);
        }
        Ok(())
    }
}

impl LongLog {
    /// The place; made if it is not there.
    pub(crate) async fn take(&mut self, args: &Args, report: &mut Report) -> Result<Place, String> {
        if let Some(place) = self.place.take() {
            return Ok(place);
        }
        let (nodes, made) = filled(args, "long", tasks(args)).await?;
        made.tell(&nodes, report).await?;
        nodes.end().await
    }

    /// The same with servers, which have caught up.
    pub(crate) async fn serve(
        &mut self,
        args: &Args,
        report: &mut Report,
    ) -> Result<Nodes, String> {
        let place = self.take(args, report).await?;
        let nodes = Nodes::start_on(args, place, &[]).await?;
        caught_up(&nodes).await?;
        Ok(nodes)
    }

    /// For the next scenario.
    pub(crate) fn give_back(&mut self, place: Place) {
        self.place = Some(place);
    }

    /// The last step.
    pub(crate) async fn remove(self) -> Result<(), String> {
        match self.place {
            Some(place) => place.remove().await,
            None => Ok(()),
        }
    }
}
