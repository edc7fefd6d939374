//! `oncebox bench --odd`: are twins and conflicts recorded about as fast as new events?

use std::sync::Arc;
use std::time::Instant;

use oncebox::clock::{Clock, SystemClock};
use oncebox::limits;
use oncebox::receipt::{Arrival, Recorded, SourceNo};
use oncebox::store::{self, Purpose, Store};
use serde::Serialize;

use super::{Bench, progress};
use crate::exit::Failure;
use crate::output::Screen;

/// How fast one kind of arrival is recorded.
#[derive(Debug, Serialize)]
struct Rate {
    case: &'static str,
    arrivals: &'static str,
    events_per_second: f64,
    /// Of the rate of new events.
    of_new: f64,
}

/// The kinds of arrivals, in the order they are recorded: the later ones need the first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    New,
    Duplicate,
    Twin,
    Conflict,
}

const KINDS: [(&str, Kind); 4] = [
    ("new", Kind::New),
    ("duplicates", Kind::Duplicate),
    ("twins", Kind::Twin),
    ("conflicts", Kind::Conflict),
];

impl Bench {
    pub(super) async fn odd(&self) -> Result<(), Failure> {
        let mut rates: Vec<Rate> = Vec::new();
        for (case, kind) in self.stores() {
            let (place, subject) = self.place(case, kind).await?;
            let store = store::open(&subject.argument(), Purpose::Serve).await?;
            let source = store.register_source("bench", None).await?;
            let bar = progress(self.deliveries * KINDS.len() as u64, format!("{case}: recording"));
            let mut new = 0.0;
            for (arrivals, kind) in KINDS {
                let rate = self.record(&store, source, kind, &bar).await?;
                if kind == Kind::New {
                    new = rate;
                }
                let of_new = rate / new;
                rates.push(Rate { case, arrivals, events_per_second: rate, of_new });
            }
            bar.finish_and_clear();
            store.close().await;
            place.remove().await?;
        }
        let mut screen = Screen::stdout();
        match self.json {
            true => rates.iter().try_for_each(|rate| screen.json(rate))?,
            false => print(&mut screen, &rates)?,
        }
        screen.flush()?;
        Ok(())
    }

    /// Records arrivals of one kind in full batches; says how many a second.
    async fn record(
        &self,
        store: &Arc<dyn Store>,
        source: SourceNo,
        kind: Kind,
        bar: &indicatif::ProgressBar,
    ) -> Result<f64, Failure> {
        let began = Instant::now();
        let numbers: Vec<u64> = (0..self.deliveries).collect();
        for batch in numbers.chunks(limits::BATCH_EVENTS) {
            let arrivals: Vec<Arrival> =
                batch.iter().map(|n| self.arrival(store, source, kind, *n)).collect();
            let recorded = store.record(arrivals.into()).await?;
            if let Some(other) = recorded.iter().find(|recorded| !is_of(kind, **recorded)) {
                return Err(Failure::failed(format!("an arrival was recorded as {other:?}")));
            }
            bar.inc(batch.len() as u64);
        }
        Ok(self.deliveries as f64 / began.elapsed().as_secs_f64())
    }

    /// Event `n` as it came first, came again, or came odd.
    fn arrival(&self, store: &Arc<dyn Store>, source: SourceNo, kind: Kind, n: u64) -> Arrival {
        let (id, content) = match kind {
            Kind::New | Kind::Duplicate => (format!("d-{n:012}"), n),
            Kind::Twin => (format!("twin-{n:012}"), n),
            Kind::Conflict => (format!("d-{n:012}"), self.deliveries + n),
        };
        let now = SystemClock.now();
        let mut body = format!("{{\"n\":{content:012},\"filler\":\"").into_bytes();
        body.resize(self.size.max(body.len()), b'x');
        let arrival = Arrival::new(store.mint().mint(now), source, now, id, "bench", body);
        Arrival { guard: Some(arrival.content), ..arrival }
    }
}

fn is_of(kind: Kind, recorded: Recorded) -> bool {
    match kind {
        Kind::New => recorded == Recorded::Accepted,
        Kind::Duplicate => matches!(recorded, Recorded::Duplicate { .. }),
        Kind::Twin => matches!(recorded, Recorded::Twin { .. }),
        Kind::Conflict => matches!(recorded, Recorded::Conflict { .. }),
    }
}

fn print(screen: &mut Screen, rates: &[Rate]) -> Result<(), Failure> {
    let headings = ["case", "arrivals", "events/s", "of new"];
    let rows = rates.iter().map(|rate| {
        vec![
            rate.case.into(),
            rate.arrivals.into(),
            format!("{:.0}", rate.events_per_second),
            format!("{:.2}", rate.of_new),
        ]
    });
    screen.table(&headings, &[2, 3], rows)?;
    Ok(())
}
