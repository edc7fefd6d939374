//! `oncebox bench --day`: what does it cost the others that a day of receipts goes?

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use jiff::Timestamp;
use oncebox::clock::{Clock, SystemClock};
use oncebox::receipt::ReceiptId;
use oncebox::store::{self, ExpireRange, Purpose, Store, day_of};
use serde::Serialize;
use tokio::sync::watch;

use super::{Bench, Kind, progress};
use crate::bench::database::fill_yesterday;
use crate::bench::flat::Queue;
use crate::exit::Failure;
use crate::output::Screen;

#[derive(Debug, Serialize)]
struct Gone {
    receipts: u64,
    /// Moving what is unfinished, taking the day out of the tables.
    take_out_ms: f64,
    /// Counting it out in parts, and the longest of these steps.
    count_out_ms: f64,
    longest_count_ms: f64,
    /// Dropping its tables.
    drop_ms: f64,
    commits: u64,
    commit_p99_before_ms: f64,
    commit_p99_ms: f64,
    commit_max_before_ms: f64,
    commit_max_ms: f64,
}

impl Bench {
    pub(super) async fn day(&self, receipts: u64) -> Result<(), Failure> {
        if self.postgres.is_none() {
            return Ok(());
        }
        let (place, subject) = self.place("day", Kind::Postgres).await?;
        let store = store::open(&subject.argument(), Purpose::Serve).await?;
        let mut queue = Queue::new(store.clone()).await?;
        let bar = progress(0, format!("filling yesterday with {receipts} receipts"));
        bar.enable_steady_tick(Duration::from_millis(200));
        if let Some(database) = &place.database {
            fill_yesterday(&database.url, receipts, self.size).await?;
        }
        bar.finish_and_clear();

        let (stop, stopped) = watch::channel(false);
        let before = Duration::from_secs(self.seconds);
        let timer = tokio::spawn(async move {
            tokio::time::sleep(before).await;
            stop.send_replace(true);
        });
        let before = queue.record_until(stopped).await?;
        // It ended the loop.
        let _ = timer.await;
        let (stop, stopped) = watch::channel(false);
        let recording = tokio::spawn(async move { queue.record_until(stopped).await });
        let steps = remove_yesterday(store.as_ref()).await?;
        stop.send_replace(true);
        let during = recording.await.expect("it does not panic")?;
        store.close().await;
        place.remove().await?;
        let gone = gone(receipts, &steps, &before, &during);
        let mut screen = Screen::stdout();
        match self.json {
            true => screen.json(&gone)?,
            false => print(&mut screen, &gone)?,
        }
        screen.flush()?;
        Ok(())
    }
}

/// Removes all days before today; how long each step took.
async fn remove_yesterday(store: &dyn Store) -> Result<Vec<Duration>, Failure> {
    let now = SystemClock.now();
    let midnight = Timestamp::from_second(i64::from(day_of(now)) * 86_400).unwrap_or(now);
    let range = ExpireRange {
        after: ReceiptId::from_bytes([0; 16]),
        before: ReceiptId::floor(midnight),
        sources: Vec::new(),
        at: now,
    };
    let mut steps = Vec::new();
    loop {
        let began = Instant::now();
        let step = store.expire_days(&range).await?;
        if step.floor.is_some() {
            return Ok(steps);
        }
        steps.push(began.elapsed());
    }
}

fn gone(
    receipts: u64,
    steps: &[Duration],
    before: &Histogram<u64>,
    during: &Histogram<u64>,
) -> Gone {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let at = |times: &Histogram<u64>, quantile| times.value_at_quantile(quantile) as f64 / 1000.0;
    let (take_out, rest) = steps.split_first().unwrap_or((&Duration::ZERO, &[]));
    let (drop, counts) = rest.split_last().unwrap_or((&Duration::ZERO, &[]));
    Gone {
        receipts,
        take_out_ms: ms(*take_out),
        count_out_ms: ms(counts.iter().sum()),
        longest_count_ms: counts.iter().copied().max().map_or(0.0, ms),
        drop_ms: ms(*drop),
        commits: during.len(),
        commit_p99_before_ms: at(before, 0.99),
        commit_p99_ms: at(during, 0.99),
        commit_max_before_ms: before.max() as f64 / 1000.0,
        commit_max_ms: during.max() as f64 / 1000.0,
    }
}

fn print(screen: &mut Screen, gone: &Gone) -> Result<(), Failure> {
    let row = |what: &str, value: f64| vec![what.into(), format!("{value:.1}")];
    let rows = vec![
        vec!["receipts that went".into(), gone.receipts.to_string()],
        row("taking the day out, ms", gone.take_out_ms),
        row("counting it out, ms", gone.count_out_ms),
        row("longest step of counting, ms", gone.longest_count_ms),
        row("dropping its tables, ms", gone.drop_ms),
        row("commit p99 before, ms", gone.commit_p99_before_ms),
        row("commit p99 meanwhile, ms", gone.commit_p99_ms),
        row("longest commit before, ms", gone.commit_max_before_ms),
        row("longest commit meanwhile, ms", gone.commit_max_ms),
    ];
    screen.table(&["day", "figure"], &[1], rows)?;
    Ok(())
}
