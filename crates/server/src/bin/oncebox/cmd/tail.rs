//! `oncebox tail`: what happens, as it happens.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use oncebox::limits::HAPPENINGS_KEPT;
use oncebox::store::{Happening, Store};
use oncebox_server::columns;
use oncebox_server::config::Config;
use oncebox_server::line::Line;

use super::deliveries::no_route;
use super::deliveries::view::Routes;
use crate::Global;
use crate::context;
use crate::exit::Failure;
use crate::output::{Screen, notice};

/// How often it is looked for news.
const LOOK: Duration = Duration::from_millis(300);

/// For how long servers are asked to write down what they do; asked again at half of it.
const WATCH: Duration = Duration::from_secs(20);

/// Show what happens live: one short line per decision and attempt
///
/// Every server on the store writes down what it decides and delivers while this runs, so it
/// shows all of them, about a second late. What workers end through SQL is not shown. Ends with
/// Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox tail
  oncebox tail --source stripe
  oncebox tail --route billing --json

Exit codes: 0 ended with Ctrl-C, 3 there is no such source or route.")]
pub(crate) struct Tail {
    /// Only decisions of this source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,

    /// Only attempts of this route
    #[arg(long, value_name = "NAME")]
    route: Option<String>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

impl Tail {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let done = tokio::select! {
            done = self.watch_named(&store, &config) => done,
            _ = tokio::signal::ctrl_c() => Ok(()),
        };
        store.close().await;
        done
    }

    /// Watches, unless it would show nothing for ever: a name must be known to the configuration or
    /// the store.
    async fn watch_named(&self, store: &Arc<dyn Store>, config: &Config) -> Result<(), Failure> {
        if let Some(name) =
            self.source.as_deref().filter(|name| !config.sources.contains_key(*name))
        {
            context::source_no(&**store, name).await?;
        }
        let routes = Routes::load(&**store, config).await?;
        match self.route.as_deref().filter(|name| !config.names_route(name) && !routes.has(name)) {
            Some(name) => Err(no_route(name, &routes)),
            None => self.watch(store).await,
        }
    }

    async fn watch(&self, store: &Arc<dyn Store>) -> Result<(), Failure> {
        let mut seen = Seen::default();
        // What was written down for an earlier `oncebox tail` is not shown.
        seen.news(store.happenings().await?);
        store.watch(WATCH).await?;
        if !self.json {
            notice("watching; Ctrl-C ends it");
        }
        let mut asked = tokio::time::Instant::now();
        loop {
            tokio::time::sleep(LOOK).await;
            if asked.elapsed() > WATCH / 2 {
                store.watch(WATCH).await?;
                asked = tokio::time::Instant::now();
            }
            let news = seen.news(store.happenings().await?);
            if !news.is_empty() {
                self.show(&news)?;
            }
        }
    }

    fn show(&self, news: &[Happening]) -> Result<(), Failure> {
        let mut screen = Screen::stdout();
        for happening in news {
            // Written by a release that we do not know.
            let Ok(line) = serde_json::from_str::<Line>(&happening.line) else { continue };
            if !self.wants(&line) {
                continue;
            }
            match self.json {
                true => screen.json(&line)?,
                false => screen.line(line.text(columns::terminal(), screen.has_colour()))?,
            }
        }
        Ok(screen.flush()?)
    }

    fn wants(&self, line: &Line) -> bool {
        let is_it = |wanted: &Option<String>, own: &Option<String>| match wanted {
            Some(_) => wanted == own,
            None => false,
        };
        self.source.is_none() && self.route.is_none()
            || is_it(&self.source, &line.source)
            || is_it(&self.route, &line.route)
    }
}

/// What was shown: the same is read again and again, for as long as it is kept.
#[derive(Default)]
struct Seen {
    numbers: HashSet<i64>,
    order: VecDeque<i64>,
}

/// As many numbers as may be kept at a time, by many nodes.
const REMEMBERED: usize = 100_000;

impl Seen {
    fn news(&mut self, mut happenings: Vec<Happening>) -> Vec<Happening> {
        happenings.retain(|happening| self.numbers.insert(happening.no));
        self.order.extend(happenings.iter().map(|happening| happening.no));
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.numbers.remove(&oldest);
            }
        }
        happenings
    }
}

// It is read more often than what it reads is removed.
const _: () = assert!(LOOK.as_millis() * 4 < HAPPENINGS_KEPT.as_millis());
