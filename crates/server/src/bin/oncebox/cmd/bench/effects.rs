//! `oncebox bench --effects`: what it costs that effects happen once.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::{Bench, Kind, Place, progress};
use crate::bench::bed::Bed;
use crate::bench::business::{Book, LookUp, MESSAGES, Mail};
use crate::bench::ledger::Filling;
use crate::bench::sink::Sink;
use crate::bench::subject::{Routes, Running, Subject};
use crate::bench::{clients, cost, ledger};
use crate::exit::Failure;
use crate::output::Screen;
use oncebox::limits;

/// Look-ups of one event, and events of one pass unless fewer are wanted: as handlers do it, and so
/// many that little else is measured.
const LOADS: [(u64, u64); 2] = [(1, 4000), (100, 100)];

/// Passes over each ledger, in turn, so that a change of weather meets both.
const PASSES: u64 = 5;

/// How often the destination is looked at for whether all is there.
const LOOK: Duration = Duration::from_millis(2);

/// What was measured of one case.
#[derive(Debug, Serialize)]
struct Figures {
    store: &'static str,
    case: &'static str,
    per_second: f64,
    /// Of what a consumer that does nothing reaches.
    of_nothing: Option<f64>,
    /// Of the worker and the database's processes.
    cpu_us_each: f64,
    deliveries: u64,
}

/// How look-ups go in an empty ledger and in a full one.
#[derive(Debug, Serialize)]
struct LookUps {
    store: &'static str,
    keys: &'static str,
    /// Look-ups of one event.
    per_event: u64,
    effects: u64,
    empty_per_second: f64,
    full_per_second: f64,
    of_empty: f64,
}

impl Bench {
    pub(super) async fn effects(&self) -> Result<(), Failure> {
        let (mut cases, mut look_ups) = (Vec::new(), Vec::new());
        for (name, kind) in self.stores() {
            self.work(name, kind, &mut cases).await?;
            cases.push(self.relay(name, kind).await?);
            look_ups.extend(self.look_up(name, kind).await?);
        }
        let mut screen = Screen::stdout();
        match self.json {
            true => {
                cases.iter().try_for_each(|figures| screen.json(figures))?;
                look_ups.iter().try_for_each(|figures| screen.json(figures))?;
            }
            false => print(&mut screen, &cases, &look_ups)?,
        }
        screen.flush()?;
        Ok(())
    }

    /// The same number of deliveries by a consumer that does nothing, by handlers in Rust, and
    /// over SQL.
    async fn work(
        &self,
        store: &'static str,
        kind: Kind,
        cases: &mut Vec<Figures>,
    ) -> Result<(), Failure> {
        let (place, subject) = self.place(store, kind).await?;
        let mut bed = Bed::new(&subject, self.size).await?;
        let count = self.deliveries;
        let cpu = || place.cpu() + cost::cpu_of(std::process::id()).unwrap_or_default();
        let mut note = |case, took: Duration, cpu: Duration, nothing: Option<f64>| {
            let mut figures = figures(store, case, count, took, cpu);
            figures.of_nothing = nothing.map(|nothing| figures.per_second / nothing);
            let rate = figures.per_second;
            cases.push(figures);
            rate
        };

        bed.record(count).await?;
        let before = cpu();
        let took = bed.do_nothing(count).await?;
        let nothing = note("nothing", took, cpu().saturating_sub(before), None);

        bed.record(count).await?;
        let before = cpu();
        let took = bed.handle(count, Book { ids: self.ids }).await?;
        note("handlers in Rust", took, cpu().saturating_sub(before), Some(nothing));

        if let Subject::Postgres(url) = &subject {
            bed.record(count).await?;
            let before = cpu();
            let (done, took) = clients::work_off(url).await?;
            if done != count {
                return Err(Failure::failed(format!("{done} of {count} were worked off by SQL")));
            }
            note("SQL, 8 connections", took, cpu().saturating_sub(before), Some(nothing));
        }
        bed.close().await;
        place.remove().await
    }

    /// Messages from the outbox to a destination that does nothing.
    async fn relay(&self, store: &'static str, kind: Kind) -> Result<Figures, Failure> {
        let (place, subject) = self.place(store, kind).await?;
        let mut bed = Bed::new(&subject, self.size).await?;
        let events = self.deliveries.div_ceil(MESSAGES);
        bed.record(events).await?;
        bed.handle(events, Mail { ids: self.ids }).await?;
        bed.close().await;
        let sink = Sink::start().await?;
        let routes = Routes { outbox: Some(sink.address), ..Routes::default() };
        let server = Running::start(&subject, limits::BATCH_EVENTS, &routes)?;
        let cpu = || place.cpu() + cost::cpu_of(server.pid()).unwrap_or_default();
        let (before, began, first) = (cpu(), Instant::now(), sink.count());
        while sink.count() < events * MESSAGES {
            tokio::time::sleep(LOOK).await;
        }
        let (took, after) = (began.elapsed(), cpu());
        server.stop()?;
        place.remove().await?;
        let count = events * MESSAGES - first;
        Ok(figures(store, "outbox relay", count, took, after.saturating_sub(before)))
    }

    /// `once` on keys that are new and on keys that are known, in two ledgers in turn.
    async fn look_up(&self, store: &'static str, kind: Kind) -> Result<Vec<LookUps>, Failure> {
        let loads = LOADS.map(|(each, events)| (each, events.min(self.deliveries)));
        let asked: u64 = loads.iter().map(|(each, events)| PASSES * each * events).sum();
        let stored = self.ledger.max(asked);
        // The empty one has the keys that are asked for, and no more.
        let (empty_place, empty) = self.ledger(&format!("{store}-empty"), kind, asked).await?;
        let (full_place, full) = self.ledger(&format!("{store}-full"), kind, stored).await?;
        let mut beds = [empty, full];
        let spinner = progress(0, format!("{store}: looking up"));
        spinner.enable_steady_tick(Duration::from_millis(200));
        let (mut look_ups, mut first_key) = (Vec::new(), 0);
        for (each, events) in loads {
            let took =
                self.passes(&mut beds, (each, events), [stored + first_key, first_key]).await?;
            let asked = PASSES * each * events;
            first_key += asked;
            let rate = |took: Duration| asked as f64 / took.as_secs_f64();
            look_ups.extend(["new", "known"].into_iter().zip(took).map(|(keys, [empty, full])| {
                let (empty_per_second, full_per_second) = (rate(empty), rate(full));
                let of_empty = full_per_second / empty_per_second;
                LookUps {
                    store,
                    keys,
                    per_event: each,
                    effects: stored,
                    empty_per_second,
                    full_per_second,
                    of_empty,
                }
            }));
        }
        spinner.finish_and_clear();
        for (bed, place) in beds.into_iter().zip([empty_place, full_place]) {
            bed.close().await;
            place.remove().await?;
        }
        Ok(look_ups)
    }

    /// How long look-ups take on each bed: of new keys, and of known ones. Given are the numbers of
    /// the first of each.
    async fn passes(
        &self,
        beds: &mut [Bed; 2],
        (each, events): (u64, u64),
        first_keys: [u64; 2],
    ) -> Result<[[Duration; 2]; 2], Failure> {
        let mut took = [[Duration::ZERO; 2]; 2];
        for pass in 0..PASSES {
            for (at, known) in [false, true].into_iter().enumerate() {
                let key = first_keys[at] + pass * each * events;
                for (bed, took) in beds.iter_mut().zip(&mut took[at]) {
                    let look_up = LookUp { ids: self.ids, each, first: bed.recorded(), key, known };
                    bed.record(events).await?;
                    *took += bed.handle(events, look_up).await?;
                }
            }
        }
        Ok(took)
    }

    /// A store with so many effects.
    async fn ledger(&self, name: &str, kind: Kind, effects: u64) -> Result<(Place, Bed), Failure> {
        let (place, subject) = self.place(name, kind).await?;
        let bed = Bed::new(&subject, self.size).await?;
        let route = bed.route;
        bed.close().await;
        let spinner = progress(0, format!("{name}: filling the ledger with {effects} effects"));
        spinner.enable_steady_tick(Duration::from_millis(200));
        ledger::fill(&subject, Filling { route, ids: self.ids, count: effects }).await?;
        spinner.finish_and_clear();
        Ok((place, Bed::new(&subject, self.size).await?))
    }
}

fn figures(
    store: &'static str,
    case: &'static str,
    deliveries: u64,
    took: Duration,
    cpu: Duration,
) -> Figures {
    let count = deliveries.max(1) as f64;
    Figures {
        store,
        case,
        per_second: count / took.as_secs_f64(),
        of_nothing: None,
        cpu_us_each: cpu.as_secs_f64() * 1e6 / count,
        deliveries,
    }
}

fn print(screen: &mut Screen, cases: &[Figures], look_ups: &[LookUps]) -> Result<(), Failure> {
    let rows = cases
        .iter()
        .map(|figures| {
            vec![
                figures.store.into(),
                figures.case.into(),
                format!("{:.0}", figures.per_second),
                figures.of_nothing.map_or_else(|| "-".into(), |share| format!("{share:.2}")),
                format!("{:.0}", figures.cpu_us_each),
                figures.deliveries.to_string(),
            ]
        })
        .collect::<Vec<_>>();
    let headings = ["store", "case", "per second", "of nothing", "CPU us each", "deliveries"];
    screen.table(&headings, &[2, 3, 4, 5], rows)?;
    let rows = look_ups
        .iter()
        .map(|figures| {
            vec![
                figures.store.into(),
                figures.keys.into(),
                figures.per_event.to_string(),
                figures.effects.to_string(),
                format!("{:.0}", figures.empty_per_second),
                format!("{:.0}", figures.full_per_second),
                format!("{:.2}", figures.of_empty),
            ]
        })
        .collect::<Vec<_>>();
    let headings =
        ["store", "keys", "per event", "effects", "once/s, empty", "once/s, full", "full of empty"];
    screen.table(&headings, &[2, 3, 4, 5, 6], rows)?;
    Ok(())
}
