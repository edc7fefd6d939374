//! `oncebox bench --flat`: do claims stay as quick as they were?

use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use oncebox::store::{self, Purpose, Store};
use serde::Serialize;

use super::{Bench, Place, progress};
use crate::bench::database::Pin;
use crate::bench::flat::Queue;
use crate::exit::Failure;
use crate::output::Screen;

/// Deliveries of which claims are measured at the beginning and after each change, unless fewer are
/// to be finished in between.
const SAMPLE: u64 = 50_000;

/// How often deliveries are counted at each moment.
const COUNTS: u64 = 200;

/// What claims cost at one moment.
#[derive(Debug, Serialize)]
struct Moment {
    case: &'static str,
    when: String,
    claim_p50_ms: f64,
    claim_p99_ms: f64,
    /// Of counting deliveries by state, for metrics.
    count_p99_ms: f64,
    claims: u64,
    /// Of the p99 at the beginning.
    of_empty: f64,
}

impl Bench {
    pub(super) async fn flat(&self) -> Result<(), Failure> {
        let mut moments = Vec::new();
        for (name, kind) in self.stores() {
            let (place, subject) = self.place(name, kind).await?;
            let store = store::open(&subject.argument(), Purpose::Serve).await?;
            self.moments(name, &place, store.clone(), &mut moments).await?;
            store.close().await;
            place.remove().await?;
        }
        let mut screen = Screen::stdout();
        match self.json {
            true => moments.iter().try_for_each(|moment| screen.json(moment))?,
            false => print(&mut screen, &moments)?,
        }
        screen.flush()?;
        Ok(())
    }

    async fn moments(
        &self,
        case: &'static str,
        place: &Place,
        store: Arc<dyn Store>,
        moments: &mut Vec<Moment>,
    ) -> Result<(), Failure> {
        let mut queue = Queue::new(store).await?;
        let sample = SAMPLE.min(self.finished.max(1));
        let empty = queue.pass(sample).await?;
        let mut note = |when: String, times: &Histogram<u64>, counts: &Histogram<u64>| {
            moments.push(moment(case, when, times, counts, &empty));
        };
        note("empty".into(), &empty, &queue.count(COUNTS).await?);
        let bar = progress(self.finished, format!("{case}: finishing deliveries"));
        let mut left = self.finished;
        while left > 0 {
            let step = left.min(sample);
            queue.pass(step).await?;
            left -= step;
            bar.inc(step);
        }
        bar.finish_and_clear();
        let times = queue.pass(sample).await?;
        note(format!("{} finished", self.finished), &times, &queue.count(COUNTS).await?);
        if let (Some(database), true) = (&place.database, self.pinned > 0) {
            let pin = Pin::hold(&database.url).await?;
            let bar = progress(0, format!("{case}: an old snapshot for {} s", self.pinned));
            bar.enable_steady_tick(Duration::from_millis(200));
            let times = queue.pass_for(Duration::from_secs(self.pinned)).await?;
            bar.finish_and_clear();
            let counts = queue.count(COUNTS).await?;
            note(format!("snapshot pinned for {} s", self.pinned), &times, &counts);
            pin.release().await?;
        }
        Ok(())
    }
}

fn moment(
    case: &'static str,
    when: String,
    times: &Histogram<u64>,
    counts: &Histogram<u64>,
    empty: &Histogram<u64>,
) -> Moment {
    let at = |times: &Histogram<u64>, quantile| times.value_at_quantile(quantile) as f64 / 1000.0;
    Moment {
        case,
        when,
        claim_p50_ms: at(times, 0.5),
        claim_p99_ms: at(times, 0.99),
        count_p99_ms: at(counts, 0.99),
        claims: times.len(),
        of_empty: at(times, 0.99) / at(empty, 0.99),
    }
}

fn print(screen: &mut Screen, moments: &[Moment]) -> Result<(), Failure> {
    let rows = moments
        .iter()
        .map(|moment| {
            vec![
                moment.case.into(),
                moment.when.clone(),
                format!("{:.2}", moment.claim_p50_ms),
                format!("{:.2}", moment.claim_p99_ms),
                format!("{:.2}", moment.of_empty),
                moment.claims.to_string(),
                format!("{:.2}", moment.count_p99_ms),
            ]
        })
        .collect::<Vec<_>>();
    let headings =
        ["case", "when", "claim p50 ms", "claim p99 ms", "p99 of empty", "claims", "count p99 ms"];
    screen.table(&headings, &[2, 3, 4, 5, 6], rows)?;
    Ok(())
}
