//! `oncebox bench --deliver`: the whole way, from acceptance to the end of the delivery.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use oncebox::clock::{Clock, SystemClock};
use oncebox::delivery::State;
use oncebox::limits;
use oncebox::store::{self, DeliveryFilter, Purpose};
use serde::Serialize;

use super::{Bench, Kind, progress};
use crate::bench::cost;
use crate::bench::load::{Load, Single, latencies};
use crate::bench::pull::Pullers;
use crate::bench::sink::Sink;
use crate::bench::subject::{Routes, Running, Subject};
use crate::exit::Failure;
use crate::output::Screen;

/// Events of the idle case, one after the other.
const IDLE_EVENTS: u64 = 500;

/// Deliveries whose lag is looked at.
const LAG_SAMPLE: usize = 20_000;

/// What was measured of one case.
#[derive(Debug, Serialize)]
struct Figures {
    store: &'static str,
    case: &'static str,
    accepted_per_second: f64,
    delivered_per_second: f64,
    delivered_of_accepted: f64,
    /// From acceptance to the end of the delivery; when idle, from the acknowledgement to the
    /// arrival at the destination.
    lag_p50_ms: f64,
    lag_p99_ms: f64,
    /// Of the server and the database's processes, acceptance included.
    cpu_us_per_delivery: f64,
    deliveries: u64,
}

/// How a case runs.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    routes: u64,
    pull: bool,
    pace: f64,
}

impl Bench {
    pub(super) async fn deliver(&self) -> Result<(), Failure> {
        let mut all = Vec::new();
        for (name, kind) in self.stores() {
            all.push(self.idle(name, kind).await?);
            let case = Case { name: "push", routes: 1, pull: false, pace: 0.0 };
            let push = self.whole_way(name, kind, case).await?;
            // Well within what it can do, so that the figures tell of work and not of waiting.
            let pace = push.delivered_per_second.min(push.accepted_per_second) * 0.6;
            all.push(push);
            let paced = Case { name: "push, paced", pace, ..case };
            all.push(self.whole_way(name, kind, paced).await?);
            let many = Case { name: "push, paced, 100 routes", routes: 100, ..paced };
            all.push(self.whole_way(name, kind, many).await?);
            let pull = Case { name: "pull", pull: true, ..case };
            all.push(self.whole_way(name, kind, pull).await?);
        }
        let mut screen = Screen::stdout();
        match self.json {
            true => all.iter().try_for_each(|figures| screen.json(figures))?,
            false => print(&mut screen, &all)?,
        }
        screen.flush()?;
        Ok(())
    }

    /// One event at a time, on a system that has nothing else to do.
    async fn idle(&self, name: &'static str, kind: Kind) -> Result<Figures, Failure> {
        let (place, subject) = self.place(name, kind).await?;
        let sink = Sink::start().await?;
        sink.note_arrivals();
        let routes = Routes { count: 1, push: Some(sink.address), outbox: None };
        let server = Running::start(&subject, limits::BATCH_EVENTS, &routes)?;
        let mut single = Single::connect(&self.load(&server, 1, 0.0)).await?;
        let (mut lags, began) = (latencies(), Instant::now());
        for number in 0..IDLE_EVENTS + 20 {
            let (id, acknowledged) = single.send().await?;
            let arrived = sink.arrival(&id).await;
            let lag = arrived.saturating_duration_since(acknowledged);
            // The first ones open connections and fill caches.
            if number >= 20 {
                lags.saturating_record(micros(lag));
            }
        }
        let rate = IDLE_EVENTS as f64 / began.elapsed().as_secs_f64();
        server.stop()?;
        place.remove().await?;
        Ok(figures(name, "idle", (rate, rate), &lags, Duration::ZERO, lags.len()))
    }

    async fn whole_way(
        &self,
        name: &'static str,
        kind: Kind,
        case: Case,
    ) -> Result<Figures, Failure> {
        let (place, subject) = self.place(name, kind).await?;
        let sink = Sink::start().await?;
        let routes =
            Routes { count: case.routes, push: (!case.pull).then_some(sink.address), outbox: None };
        let token = match case.pull {
            true => Some(subject.token().await?),
            false => None,
        };
        let server = Running::start(&subject, limits::BATCH_EVENTS, &routes)?;
        let pullers = token.map(|token| Pullers::start(server.admin, &token));
        let delivered = || pullers.as_ref().map_or_else(|| sink.count(), Pullers::count);
        let spinner = progress(0, format!("{name}: {}", case.name));
        spinner.enable_steady_tick(Duration::from_millis(200));
        let cpu = || place.cpu() + cost::cpu_of(server.pid()).unwrap_or_default();
        let (mut before, mut after) = ((Duration::ZERO, 0), (Duration::ZERO, 0));
        let since = SystemClock.now() + Duration::from_secs(1);
        let load = self.load(&server, case.routes, case.pace);
        let measured =
            load.run(|| before = (cpu(), delivered()), || after = (cpu(), delivered())).await?;
        spinner.finish_and_clear();
        drop(pullers);
        server.stop()?;
        let lags = lags(&subject, since).await?;
        place.remove().await?;
        let seconds = measured.took.as_secs_f64();
        let deliveries = after.1 - before.1;
        let rates = (measured.events as f64 / seconds, deliveries as f64 / seconds);
        Ok(figures(name, case.name, rates, &lags, after.0.saturating_sub(before.0), deliveries))
    }

    fn load(&self, server: &Running, types: u64, pace: f64) -> Load {
        Load {
            target: server.address,
            connections: self.connections,
            size: self.size,
            ids: self.ids,
            types,
            pace,
            warm_up: Duration::from_secs(1),
            measured: Duration::from_secs(self.seconds),
            run: SystemClock.now().as_millisecond().unsigned_abs() & 0xff_ffff,
        }
    }
}

/// How long deliveries took from acceptance to their end, by the store's own record.
async fn lags(subject: &Subject, since: jiff::Timestamp) -> Result<Histogram<u64>, Failure> {
    let store = store::open(&subject.argument(), Purpose::Operate).await?;
    let mut lags = latencies();
    let mut filter = DeliveryFilter {
        state: Some(State::Processed),
        since: Some(since),
        limit: limits::LIST_PAGE,
        ..DeliveryFilter::default()
    };
    while lags.len() < LAG_SAMPLE as u64 {
        let page = store.deliveries(&filter).await?;
        let Some(last) = page.last() else { break };
        filter.before = Some(last.delivery);
        for row in &page {
            if let Some(finished) = row.finished_at {
                let lag = finished.duration_since(row.received_at);
                lags.saturating_record(micros(lag.unsigned_abs()));
            }
        }
    }
    store.close().await;
    Ok(lags)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1)
}

fn figures(
    store: &'static str,
    case: &'static str,
    (accepted, delivered): (f64, f64),
    lags: &Histogram<u64>,
    cpu: Duration,
    deliveries: u64,
) -> Figures {
    let at = |quantile| lags.value_at_quantile(quantile) as f64 / 1000.0;
    Figures {
        store,
        case,
        accepted_per_second: accepted,
        delivered_per_second: delivered,
        delivered_of_accepted: delivered / accepted.max(1.0),
        lag_p50_ms: at(0.5),
        lag_p99_ms: at(0.99),
        cpu_us_per_delivery: cpu.as_secs_f64() * 1e6 / deliveries.max(1) as f64,
        deliveries,
    }
}

fn print(screen: &mut Screen, all: &[Figures]) -> Result<(), Failure> {
    let headings = [
        "store",
        "case",
        "accepted/s",
        "delivered/s",
        "of accepted",
        "lag p50 ms",
        "lag p99 ms",
        "CPU us/delivery",
    ];
    let rows = all
        .iter()
        .map(|figures| {
            vec![
                figures.store.into(),
                figures.case.into(),
                format!("{:.0}", figures.accepted_per_second),
                format!("{:.0}", figures.delivered_per_second),
                format!("{:.2}", figures.delivered_of_accepted),
                format!("{:.1}", figures.lag_p50_ms),
                format!("{:.1}", figures.lag_p99_ms),
                format!("{:.1}", figures.cpu_us_per_delivery),
            ]
        })
        .collect::<Vec<_>>();
    screen.table(&headings, &[2, 3, 4, 5, 6, 7], rows)?;
    Ok(())
}
