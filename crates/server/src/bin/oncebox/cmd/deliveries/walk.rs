//! Walking over deliveries, newest first, by the states that are shown.
//!
//! A state that is shown may be several stored ones, each on some routes only. Each of these is
//! a list of its own in the store; the walk goes through them side by side, a page at a time.

use std::collections::VecDeque;

use oncebox::delivery::{Reason, State};
use oncebox::limits::LIST_PAGE;
use oncebox::store::{DeliveryFilter, DeliveryRow, Store, StoreError};

use super::view::{Routes, Shown, waits};

/// A walk over the deliveries that a filter means.
pub(crate) struct Walk<'a> {
    store: &'a dyn Store,
    streams: Vec<Stream>,
    /// How many may still come; none is no limit.
    left: Option<usize>,
    ended: bool,
}

/// One list of the store.
struct Stream {
    filter: DeliveryFilter,
    page: VecDeque<DeliveryRow>,
    ended: bool,
}

impl<'a> Walk<'a> {
    /// `filter` names state and reason as they are shown.
    pub(crate) fn new(
        store: &'a dyn Store,
        routes: &Routes,
        filter: DeliveryFilter,
        most: Option<usize>,
    ) -> Self {
        Self::over(store, routes, [filter], most)
    }

    /// As [`Walk::new`], over what any of several filters means. No two of them mean the same
    /// delivery.
    pub(crate) fn over(
        store: &'a dyn Store,
        routes: &Routes,
        filters: impl IntoIterator<Item = DeliveryFilter>,
        most: Option<usize>,
    ) -> Self {
        let page = most.unwrap_or(LIST_PAGE).min(LIST_PAGE);
        let lists = filters.into_iter().flat_map(|filter| stored(routes, filter));
        let streams = lists.map(|filter| Stream {
            filter: DeliveryFilter { limit: page, ..filter },
            page: VecDeque::new(),
            ended: page == 0,
        });
        Self { store, streams: streams.collect(), left: most, ended: false }
    }

    /// The next of them, up to a page full; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<DeliveryRow>>, StoreError> {
        let asked = self.left.unwrap_or(LIST_PAGE).min(LIST_PAGE);
        let mut rows = Vec::new();
        while !self.ended && rows.len() < asked {
            match self.newest().await? {
                Some(row) => rows.push(row),
                None => self.ended = true,
            }
        }
        self.left = self.left.map(|left| left.saturating_sub(rows.len()));
        Ok((!rows.is_empty()).then_some(rows))
    }

    /// Whether the limit, and not the end of the store, ended the walk.
    pub(crate) fn may_have_more(&self) -> bool {
        !self.ended && self.left == Some(0)
    }

    async fn newest(&mut self) -> Result<Option<DeliveryRow>, StoreError> {
        for stream in &mut self.streams {
            stream.fill(self.store).await?;
        }
        let first = |stream: &Stream| stream.page.front().map(|row| row.delivery);
        let newest = self.streams.iter_mut().max_by_key(|stream| first(stream));
        Ok(newest.and_then(|stream| stream.page.pop_front()))
    }
}

impl Stream {
    async fn fill(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        if self.page.is_empty() && !self.ended {
            self.page = store.deliveries(&self.filter).await?.into();
            self.ended = self.page.len() < self.filter.limit;
            self.filter.before = self.page.back().map(|row| row.delivery);
        }
        Ok(())
    }
}

/// The lists of the store that hold what a filter means, none of them twice.
fn stored(routes: &Routes, filter: DeliveryFilter) -> Vec<DeliveryFilter> {
    let mut lists = Vec::new();
    let of = |name: &str, state: Option<State>, reason: Option<Reason>| DeliveryFilter {
        route: Some(name.to_owned()),
        state,
        reason,
        ..filter.clone()
    };
    let chosen = routes.views.iter().map(|view| view.name.as_str());
    let chosen = chosen.filter(|name| filter.route.as_deref().is_none_or(|only| only == *name));
    let (held, free): (Vec<&str>, Vec<&str>) =
        chosen.partition(|name| routes.why_held(name).is_some());
    let means_held =
        filter.state == Some(State::Held) || filter.state.is_none() && filter.reason.is_some();
    for name in held.iter().filter(|_| means_held) {
        for state in [State::Received, State::Retrying] {
            let Shown { reason, .. } = routes.shown(name, state, None);
            if filter.reason.is_none() || filter.reason == reason {
                lists.push(of(name, Some(state), None));
            }
        }
    }
    let only_waiting = filter.state.is_some_and(waits) && filter.reason.is_none();
    if only_waiting && !held.is_empty() {
        lists.extend(free.into_iter().map(|name| of(name, filter.state, None)));
    } else if !matches!(filter.reason, Some(Reason::Paused | Reason::NoRoute)) {
        lists.push(filter);
    }
    lists
}
