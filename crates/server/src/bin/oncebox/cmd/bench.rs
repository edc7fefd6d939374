//! `oncebox bench`: how fast, against a ceiling measured beside it.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use oncebox::clock::{Clock, SystemClock};
use oncebox::limits;
use serde::Serialize;

use crate::bench::cost;
use crate::bench::database::Database;
use crate::bench::load::{Ids, Load, Measured};
use crate::bench::subject::{Folder, Routes, Running, Subject, prefill};
use crate::exit::Failure;
use crate::output::{Screen, notice};

mod day;
mod deliver;
mod effects;
mod flat;
mod odd;

/// Measure the accept path: events per second, latency, CPU and bytes per event
///
/// Drives the real server, in a process of its own, over loopback with signed Stripe events, once
/// for each store, and once with a store that does nothing: the ceiling of this machine. Compare
/// the ratios, not the figures.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  oncebox bench
  oncebox bench --postgres postgres://postgres@localhost/postgres
  oncebox bench --prefill 10000000 --ids random --only sqlite
  oncebox bench --deliver --postgres postgres://postgres@localhost/postgres
  oncebox bench --flat --finished 1000000 --pinned 600
  oncebox bench --effects --postgres postgres://postgres@localhost/postgres
  oncebox bench --odd --postgres postgres://postgres@localhost/postgres
  oncebox bench --day 5000000 --size 256 --postgres postgres://postgres@localhost/postgres
  oncebox bench --effects --ledger 10000000 --ids random --only sqlite")]
pub(crate) struct Bench {
    /// Connections that send at the same time
    #[arg(long, default_value_t = 256, value_name = "N")]
    connections: usize,

    /// Bytes of a body
    #[arg(long, default_value_t = 2048, value_name = "BYTES")]
    size: usize,

    /// Seconds measured for each case, after a second of warm-up
    #[arg(long, default_value_t = 8, value_name = "SECONDS")]
    seconds: u64,

    /// Identities already stored when a case begins
    #[arg(long, default_value_t = 0, value_name = "N")]
    prefill: usize,

    /// How event ids look, and keys of effects that are made of such ids
    #[arg(long, value_enum, default_value = "stripe")]
    ids: Ids,

    /// A PostgreSQL server on which databases may be created for the run
    #[arg(long, value_name = "URL", env = "ONCEBOX_BENCH_POSTGRES")]
    postgres: Option<String>,

    /// Only cases whose name begins so, and the ceiling
    #[arg(long, value_name = "CASE")]
    only: Option<String>,

    /// Leave out the cases with one commit per event
    #[arg(long)]
    no_single: bool,

    /// Measure the whole way instead: events accepted, and delivered by push and by pull
    #[arg(long, conflicts_with = "flat")]
    deliver: bool,

    /// Measure claims instead: on an empty store, beside many finished deliveries, and on
    /// PostgreSQL while an old snapshot is held
    #[arg(long)]
    flat: bool,

    /// Finished deliveries beside which claims are measured
    #[arg(long, default_value_t = 1_000_000, value_name = "N", requires = "flat")]
    finished: u64,

    /// Seconds the old snapshot is held
    #[arg(long, default_value_t = 600, value_name = "SECONDS", requires = "flat")]
    pinned: u64,

    /// Measure effects instead: handlers in Rust and over SQL, the outbox, and look-ups of keys in
    /// an empty ledger and in a full one
    #[arg(long, conflicts_with_all = ["flat", "deliver"])]
    effects: bool,

    /// Measure odd arrivals instead: new events, and their duplicates, twins and conflicts
    #[arg(long, conflicts_with_all = ["flat", "deliver", "effects"])]
    odd: bool,

    /// Measure instead what commits wait while a day of so many receipts is removed; PostgreSQL
    /// only
    #[arg(long, value_name = "N", conflicts_with_all = ["flat", "deliver", "effects", "odd"])]
    day: Option<u64>,

    /// Deliveries and messages of each case of --effects, arrivals of each case of --odd
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    deliveries: u64,

    /// Effects in the full ledger
    #[arg(long, default_value_t = 1_000_000, value_name = "N", requires = "effects")]
    ledger: u64,

    /// Where SQLite's files go [default: the system's folder for temporary files]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// One JSON object per case
    #[arg(long)]
    json: bool,
}

/// What was measured of one case.
#[derive(Debug, Serialize)]
struct Figures {
    case: &'static str,
    events_per_second: f64,
    /// Of the ceiling's events per second.
    of_ceiling: Option<f64>,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    /// Of the server and, on this machine, of the database's processes.
    cpu_us_per_event: f64,
    /// The ceiling's is one.
    cpu_of_ceiling: Option<f64>,
    bytes_on_disk_per_event: Option<f64>,
    server_memory_mib: f64,
    events: u64,
    refused: u64,
    connections: usize,
    body_bytes: usize,
    prefilled: usize,
}

impl Figures {
    /// The mean of two runs of the same case.
    fn mean(&self, other: &Self) -> Self {
        let mean = |figure: fn(&Self) -> f64| f64::midpoint(figure(self), figure(other));
        Self {
            events_per_second: mean(|run| run.events_per_second),
            p50_ms: mean(|run| run.p50_ms),
            p99_ms: mean(|run| run.p99_ms),
            p999_ms: mean(|run| run.p999_ms),
            cpu_us_per_event: mean(|run| run.cpu_us_per_event),
            server_memory_mib: mean(|run| run.server_memory_mib),
            events: self.events + other.events,
            refused: self.refused + other.refused,
            ..*self
        }
    }
}

/// What a case runs on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Sqlite,
    Postgres,
}

const CASES: [(&str, Kind, usize); 5] = [
    ("ceiling", Kind::Nothing, limits::BATCH_EVENTS),
    ("sqlite", Kind::Sqlite, limits::BATCH_EVENTS),
    ("postgres", Kind::Postgres, limits::BATCH_EVENTS),
    ("sqlite-single", Kind::Sqlite, 1),
    ("postgres-single", Kind::Postgres, 1),
];

impl Bench {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if self.deliver {
            self.deliver().await?;
        } else if self.flat {
            self.flat().await?;
        } else if self.effects {
            self.effects().await?;
        } else if self.odd {
            self.odd().await?;
        } else if let Some(receipts) = self.day {
            self.day(receipts).await?;
        } else {
            self.accept().await?;
        }
        if self.postgres.is_none() {
            notice("PostgreSQL was not measured; name a server with --postgres.");
        }
        Ok(())
    }

    async fn accept(&self) -> Result<(), Failure> {
        let wanted = |(name, kind, batch): &(&'static str, Kind, usize)| {
            let only = self.only.as_ref();
            let named = *kind == Kind::Nothing || only.is_none_or(|only| name.starts_with(only));
            named
                && (*kind != Kind::Postgres || self.postgres.is_some())
                && (*batch > 1 || !self.no_single)
        };
        let mut all = Vec::new();
        for (name, kind, batch) in CASES.into_iter().filter(wanted) {
            all.push(self.case(name, kind, batch).await?);
        }
        // The ceiling varies most, as nothing holds its batches together. It is measured again at
        // the end, and the mean of both stands for it.
        let (name, kind, batch) = CASES[0];
        let again = self.case(name, kind, batch).await?;
        all[0] = all[0].mean(&again);
        let (rate, cpu) = (all[0].events_per_second, all[0].cpu_us_per_event);
        for figures in &mut all {
            figures.of_ceiling = Some(figures.events_per_second / rate);
            figures.cpu_of_ceiling = Some(figures.cpu_us_per_event / cpu);
        }
        let mut screen = Screen::stdout();
        match self.json {
            true => all.iter().try_for_each(|figures| screen.json(figures))?,
            false => print(&mut screen, &all)?,
        }
        screen.flush()?;
        Ok(())
    }

    /// The stores to measure.
    fn stores(&self) -> Vec<(&'static str, Kind)> {
        let only = |name: &str| self.only.as_ref().is_none_or(|only| name.starts_with(only));
        let all = [("sqlite", Kind::Sqlite), ("postgres", Kind::Postgres)];
        all.into_iter()
            .filter(|(name, kind)| {
                only(name) && (*kind != Kind::Postgres || self.postgres.is_some())
            })
            .collect()
    }

    async fn case(&self, name: &'static str, kind: Kind, batch: usize) -> Result<Figures, Failure> {
        let (place, subject) = self.place(name, kind).await?;
        if self.prefill > 0 && kind != Kind::Nothing {
            let progress = progress(self.prefill as u64, format!("{name}: prefilling"));
            prefill(&subject, self.prefill, self.ids, &progress).await?;
            progress.finish_and_clear();
        }
        let bytes_before = place.bytes().await?;
        let figures = self.measure(name, &subject, batch, &place, bytes_before).await?;
        place.remove().await?;
        Ok(figures)
    }

    /// A store of its own for a case.
    async fn place(&self, name: &str, kind: Kind) -> Result<(Place, Subject), Failure> {
        let under = self.folder.clone().unwrap_or_else(std::env::temp_dir);
        let folder = Folder::new(&under, name)?;
        let database = match (kind, &self.postgres) {
            (Kind::Postgres, Some(url)) => {
                Some(Database::create(url, &name.replace('-', "_")).await?)
            }
            _ => None,
        };
        let subject = match (kind, &database) {
            (Kind::Sqlite, _) => Subject::Sqlite(folder.0.join("oncebox.db")),
            (Kind::Postgres, Some(database)) => Subject::Postgres(database.url.clone()),
            _ => Subject::Nothing,
        };
        Ok((Place { folder, database }, subject))
    }

    async fn measure(
        &self,
        name: &'static str,
        subject: &Subject,
        batch: usize,
        place: &Place,
        bytes_before: Option<u64>,
    ) -> Result<Figures, Failure> {
        let server = Running::start(subject, batch, &Routes::default())?;
        let load = Load {
            target: server.address,
            connections: self.connections,
            size: self.size,
            ids: self.ids,
            types: 1,
            pace: 0.0,
            warm_up: Duration::from_secs(1),
            measured: Duration::from_secs(self.seconds),
            run: SystemClock.now().as_millisecond().unsigned_abs() & 0xff_ffff,
        };
        let spinner = progress(0, format!("{name}: measuring for {} s", self.seconds));
        spinner.enable_steady_tick(Duration::from_millis(200));
        let cpu = || place.cpu() + cost::cpu_of(server.pid()).unwrap_or_default();
        let (mut before, mut after) = (Duration::ZERO, Duration::ZERO);
        let measured = load.run(|| before = cpu(), || after = cpu()).await?;
        spinner.finish_and_clear();
        let memory = cost::memory_peak(server.pid()).unwrap_or(0);
        server.stop()?;
        let bytes = match (bytes_before, place.bytes().await?) {
            (Some(before), Some(after)) => Some(after.saturating_sub(before)),
            _ => None,
        };
        let mut figures = self.figures(name, &measured, after.saturating_sub(before));
        // The warm-up wrote as well, so its events count here.
        let written = measured.events as f64 * (1.0 + 1.0 / self.seconds.max(1) as f64);
        figures.bytes_on_disk_per_event = bytes.map(|bytes| bytes as f64 / written);
        figures.server_memory_mib = memory as f64 / f64::from(1 << 20);
        Ok(figures)
    }

    fn figures(&self, case: &'static str, measured: &Measured, cpu: Duration) -> Figures {
        let at = |quantile| measured.latencies.value_at_quantile(quantile) as f64 / 1000.0;
        let events = measured.events.max(1) as f64;
        Figures {
            case,
            events_per_second: measured.events as f64 / measured.took.as_secs_f64(),
            of_ceiling: None,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            cpu_us_per_event: cpu.as_secs_f64() * 1e6 / events,
            cpu_of_ceiling: None,
            bytes_on_disk_per_event: None,
            server_memory_mib: 0.0,
            events: measured.events,
            refused: measured.refused,
            connections: self.connections,
            body_bytes: self.size,
            prefilled: self.prefill,
        }
    }
}

/// Where a case keeps its data.
struct Place {
    folder: Folder,
    database: Option<Database>,
}

impl Place {
    fn cpu(&self) -> Duration {
        let postmaster = self.database.as_ref().and_then(|database| database.postmaster);
        postmaster.and_then(cost::cpu_of_family).unwrap_or_default()
    }

    async fn remove(self) -> Result<(), Failure> {
        match self.database {
            Some(database) => database.drop().await,
            None => Ok(()),
        }
    }

    async fn bytes(&self) -> Result<Option<u64>, Failure> {
        match &self.database {
            Some(database) => database.bytes().await.map(Some),
            None => Ok(Some(cost::folder_bytes(&self.folder.0))),
        }
    }
}

fn progress(length: u64, message: String) -> ProgressBar {
    let bar = match length {
        0 => ProgressBar::new_spinner(),
        length => ProgressBar::new(length),
    };
    let style = match length {
        0 => ProgressStyle::with_template("{spinner} {msg}"),
        _ => ProgressStyle::with_template("{msg} {bar:30} {human_pos} of {human_len}, {eta} left"),
    };
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.set_message(message);
    bar
}

fn print(screen: &mut Screen, all: &[Figures]) -> Result<(), Failure> {
    let headings = [
        "case",
        "events/s",
        "of ceiling",
        "p50 ms",
        "p99 ms",
        "p999 ms",
        "CPU us/event",
        "CPU of ceiling",
        "disk B/event",
        "memory MiB",
        "refused",
    ];
    let or_dash = |value: Option<f64>, decimals: usize| {
        value.map_or_else(|| "-".into(), |value| format!("{value:.decimals$}"))
    };
    let rows = all
        .iter()
        .map(|figures| {
            vec![
                figures.case.into(),
                format!("{:.0}", figures.events_per_second),
                or_dash(figures.of_ceiling, 2),
                format!("{:.1}", figures.p50_ms),
                format!("{:.1}", figures.p99_ms),
                format!("{:.1}", figures.p999_ms),
                format!("{:.1}", figures.cpu_us_per_event),
                or_dash(figures.cpu_of_ceiling, 2),
                or_dash(figures.bytes_on_disk_per_event, 0),
                format!("{:.0}", figures.server_memory_mib),
                figures.refused.to_string(),
            ]
        })
        .collect::<Vec<_>>();
    screen.table(&headings, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], rows)?;
    Ok(())
}
