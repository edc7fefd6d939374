//! Driving a replay from the command line, with its progress shown.

use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use oncebox::replay::{Driver, Ended, Phase, Replay, ReplayId};
use oncebox::store::{Store, StoreError};
use tokio::sync::watch;

use super::outlook::Outlook;
use crate::cmd::replays::as_json;
use crate::exit::Failure;
use crate::output::{Screen, count};

/// How often a replay that somebody else drives is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Drives a replay to its end. While somebody else drives it, this watches.
pub(crate) async fn drive(
    store: &Arc<dyn Store>,
    job: Replay,
    outlook: &Outlook,
    json: bool,
) -> Result<(), Failure> {
    let id = job.id;
    // Drawn on stderr, and only if that is a terminal.
    let bar = ProgressBar::new(job.planned).with_style(style());
    let stop = stop_on_interrupt();
    let ended = drive_or_watch(store, id, &bar, &stop).await;
    bar.finish_and_clear();
    let left = |failure: Failure| failure.hint(how_to_go_on(id));
    match ended.map_err(|error| left(Failure::from(error)))? {
        Ended::Done => tell(store, id, outlook, json).await,
        Ended::Cancelled => Err(Failure::failed(format!("replay {id} was cancelled"))),
        Ended::Stopped | Ended::Taken => {
            Err(left(Failure::failed(format!("interrupted; replay {id} is not cancelled"))))
        }
    }
}

fn how_to_go_on(id: ReplayId) -> String {
    format!(
        "a running server goes on with it within half a minute; without one, \
         `oncebox replays resume {id}`; to stop it, `oncebox replays cancel {id}`"
    )
}

fn style() -> ProgressStyle {
    let template = "{bar:40} {pos} of {len} deliveries, {elapsed}";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Turns true once somebody presses ^C.
fn stop_on_interrupt() -> watch::Receiver<bool> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            let _ = stop.send(true);
        }
        // Kept until then: a signal that cannot be had must not look like one that came.
        stop.closed().await;
    });
    stopped
}

async fn drive_or_watch(
    store: &Arc<dyn Store>,
    id: ReplayId,
    bar: &ProgressBar,
    stop: &watch::Receiver<bool>,
) -> Result<Ended, StoreError> {
    let progress = |job: &Replay| bar.set_position(job.opened + job.passed);
    let mut stopped = stop.clone();
    loop {
        if let Some(driver) = Driver::take(store, Some(id)).await? {
            progress(driver.job());
            match driver.run(progress, stop.clone()).await? {
                Ended::Taken => {}
                ended => return Ok(ended),
            }
        }
        let job = store.replay(id).await?;
        match job.as_ref().map(|job| job.phase) {
            Some(Phase::Running) => job.iter().for_each(progress),
            Some(Phase::Done) => return Ok(Ended::Done),
            Some(Phase::Cancelled) | None => return Ok(Ended::Cancelled),
        }
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return Ok(Ended::Stopped),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Tells what came of a replay that is through.
async fn tell(
    store: &Arc<dyn Store>,
    id: ReplayId,
    outlook: &Outlook,
    json: bool,
) -> Result<(), Failure> {
    let Some(job) = store.replay(id).await? else { return Ok(()) };
    let mut screen = Screen::stdout();
    if json {
        screen.json(&as_json(&job, &store.routes().await?))?;
    } else {
        let opened = count(usize::try_from(job.opened).unwrap_or(usize::MAX), "delivery");
        let mut words = vec![format!("replay {id}: {opened} opened again")];
        words.extend(outlook.clauses());
        if job.passed > 0 {
            words.push(format!("{} left as they were", job.passed));
        }
        screen.line(words.join("; "))?;
    }
    screen.flush()?;
    Ok(())
}
