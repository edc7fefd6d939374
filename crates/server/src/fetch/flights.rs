//! Fetches under way and what they brought: who asks for the same URL shares one answer, as far
//! as it is new enough.
//!
//! An event tells of a change that was made before it was received. Only a request that was sent
//! after that is sure to show the change. So an answer serves a delivery if its request began
//! after the event was received, by clocks that may differ a little, or after the delivery asked.
//! Whoever cannot be served by the request under way waits for the next one, which begins when
//! that has ended, and takes everybody along who has asked by then. However many ask, there are
//! never more than two.
//!
//! Nothing here reads a clock.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use oncebox::clock::Clock;
use oncebox::delivery::Current;
use oncebox::limits;
use tokio::sync::watch;

use super::failure::Failure;

/// What a fetch came to.
pub(super) type Answer = Result<Current, Failure>;

/// Where an answer is heard.
pub(super) type Ear = watch::Receiver<Option<Answer>>;

/// A moment by both clocks: the one events are received by, and the one that never jumps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) wall: Timestamp,
    pub(super) steady: Instant,
}

impl Moment {
    pub(super) fn now(clock: &dyn Clock) -> Self {
        Self { wall: clock.now(), steady: Instant::now() }
    }

    /// Whether a request that began here is sure to have begun after an event was received,
    /// asked at a later moment. If the wall clock was set meanwhile, nobody can tell.
    fn is_after(self, received_at: Timestamp, now: Self) -> bool {
        let slack = SignedDuration::try_from(limits::FETCH_CLOCK_SLACK).unwrap_or_default();
        let steady = now.steady.saturating_duration_since(self.steady);
        let steady = SignedDuration::try_from(steady).unwrap_or(SignedDuration::MAX);
        let drift = now.wall.duration_since(self.wall).saturating_sub(steady).abs();
        drift <= slack && self.wall.duration_since(received_at) >= slack
    }
}

/// What somebody who asks for a URL gets.
pub(super) enum Asked {
    /// An answer that was kept.
    Kept(Current),
    /// A place to hear the answer to somebody else's request.
    Joined(Ear),
    /// The duty to make the request.
    Yours(Ticket),
}

/// The duty to make a request: begin it, end it, tell.
pub(super) struct Ticket {
    tell: watch::Sender<Option<Answer>>,
    /// The request under way, which has to end first.
    before: Option<Ear>,
}

impl Ticket {
    /// Waits until the request before has ended, however it did.
    pub(super) async fn turn(&mut self) {
        if let Some(before) = &mut self.before {
            let _ = before.wait_for(Option::is_some).await;
        }
    }

    /// Where the answer will be heard.
    pub(super) fn ear(&self) -> Ear {
        self.tell.subscribe()
    }

    /// Tells everybody who waits.
    pub(super) fn tell(self, answer: Answer) {
        self.tell.send_replace(Some(answer));
    }
}

/// The fetches of one route.
pub(super) struct Flights {
    by_url: HashMap<Arc<str>, OfUrl>,
    kept: Kept,
}

/// The requests for one URL.
#[derive(Default)]
struct OfUrl {
    under_way: Option<(Moment, Ear)>,
    next: Option<Ear>,
}

impl Flights {
    /// Keeps answers for that long.
    pub(super) fn new(keep: Duration) -> Self {
        Self { by_url: HashMap::new(), kept: Kept::new(keep) }
    }

    /// Asks for a URL on behalf of an event.
    pub(super) fn ask(&mut self, url: &Arc<str>, received_at: Timestamp, now: Moment) -> Asked {
        if let Some(current) = self.kept.get(url, received_at, now) {
            return Asked::Kept(current);
        }
        let of_url = self.by_url.entry(url.clone()).or_default();
        if let Some((began, ear)) = &of_url.under_way
            && is_alive(ear)
            && began.is_after(received_at, now)
        {
            return Asked::Joined(ear.clone());
        }
        if let Some(ear) = of_url.next.as_ref().filter(|ear| is_alive(ear)) {
            return Asked::Joined(ear.clone());
        }
        let (tell, ear) = watch::channel(None);
        of_url.next = Some(ear);
        let before = of_url.under_way.as_ref().map(|(_, ear)| ear.clone());
        Asked::Yours(Ticket { tell, before })
    }

    /// The request that was next is sent now.
    pub(super) fn begin(&mut self, url: &Arc<str>, now: Moment) {
        if let Some(of_url) = self.by_url.get_mut(url) {
            of_url.under_way = of_url.next.take().map(|ear| (now, ear));
        }
    }

    /// The request under way has ended; what it brought is kept for a while.
    pub(super) fn end(&mut self, url: &Arc<str>, began: Moment, answer: &Answer) {
        if let Some(of_url) = self.by_url.get_mut(url) {
            of_url.under_way = None;
            if of_url.next.is_none() {
                self.by_url.remove(url);
            }
        }
        if let Ok(current) = answer {
            self.kept.put(url, began, current.clone());
        }
    }

    /// The request that was next is not made.
    pub(super) fn give_up(&mut self, url: &Arc<str>) {
        if let Some(of_url) = self.by_url.get_mut(url) {
            of_url.next = None;
            if of_url.under_way.is_none() {
                self.by_url.remove(url);
            }
        }
    }
}

/// Whether something will still be heard, or was. If not, whoever had the duty is gone.
fn is_alive(ear: &Ear) -> bool {
    ear.borrow().is_some() || ear.has_changed().is_ok()
}

/// Answers, oldest out first: all are kept for the same time, so the oldest is of least use.
struct Kept {
    keep: Duration,
    rows: HashMap<Arc<str>, Row>,
    /// In the order they were put; what was replaced since is in it, too.
    order: VecDeque<(Arc<str>, u64)>,
    puts: u64,
    bytes: usize,
}

struct Row {
    number: u64,
    began: Moment,
    current: Current,
}

impl Kept {
    fn new(keep: Duration) -> Self {
        let (rows, order) = (HashMap::new(), VecDeque::new());
        Self { keep, rows, order, puts: 0, bytes: 0 }
    }

    fn get(&self, url: &Arc<str>, received_at: Timestamp, now: Moment) -> Option<Current> {
        let row = self.rows.get(url)?;
        let serves = self.is_kept(row, now) && row.began.is_after(received_at, now);
        serves.then(|| row.current.clone())
    }

    fn put(&mut self, url: &Arc<str>, began: Moment, current: Current) {
        if self.keep.is_zero() {
            return;
        }
        self.puts += 1;
        let number = self.puts;
        self.bytes += size(url, &current);
        self.order.push_back((url.clone(), number));
        let replaced = self.rows.insert(url.clone(), Row { number, began, current });
        if let Some(replaced) = replaced {
            self.bytes -= size(url, &replaced.current);
        }
        self.trim(began);
    }

    /// Lets go of what is too old, and of the oldest while it is too much.
    fn trim(&mut self, now: Moment) {
        while let Some((url, number)) = self.order.front() {
            let row = self.rows.get(url).filter(|row| row.number == *number);
            let is_much =
                self.order.len() > limits::FETCHES_KEPT || self.bytes > limits::FETCH_KEPT_BYTES;
            if row.is_some_and(|row| self.is_kept(row, now)) && !is_much {
                return;
            }
            if let Some(row) = row {
                self.bytes -= size(url, &row.current);
                self.rows.remove(&url.clone());
            }
            self.order.pop_front();
        }
    }

    fn is_kept(&self, row: &Row, now: Moment) -> bool {
        now.steady.saturating_duration_since(row.began.steady) <= self.keep
    }
}

fn size(url: &str, current: &Current) -> usize {
    let body = match current {
        Current::Found { content_type, body } => content_type.len() + body.len(),
        Current::Missing => 0,
    };
    url.len() + body
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moments of a story, which knows no other time.
    struct Story {
        start: Instant,
    }

    impl Story {
        fn at(&self, milliseconds: u64) -> Moment {
            let wall = noon(i64::try_from(milliseconds).unwrap());
            Moment { wall, steady: self.start + Duration::from_millis(milliseconds) }
        }
    }

    fn story(keep_ms: u64) -> (Story, Flights, Arc<str>) {
        let flights = Flights::new(Duration::from_millis(keep_ms));
        (Story { start: Instant::now() }, flights, "https://api.test/in_1".into())
    }

    fn noon(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(1_790_000_000_000 + milliseconds).unwrap()
    }

    fn found(text: &str) -> Current {
        let body = bytes::Bytes::copy_from_slice(text.as_bytes());
        Current::Found { content_type: String::new(), body }
    }

    /// What somebody gets who asks and then goes away: a word for it.
    fn asks(flights: &mut Flights, url: &Arc<str>, received: i64, now: Moment) -> &'static str {
        match flights.ask(url, noon(received), now) {
            Asked::Kept(_) => "kept",
            Asked::Joined(_) => "joined",
            Asked::Yours(_) => "yours",
        }
    }

    /// Makes a whole request, from the moment it begins.
    fn brings(flights: &mut Flights, url: &Arc<str>, began: Moment, text: &str) {
        let Asked::Yours(ticket) = flights.ask(url, began.wall, began) else { panic!("not mine") };
        flights.begin(url, began);
        let answer = Ok(found(text));
        flights.end(url, began, &answer);
        ticket.tell(answer);
    }

    /// The cache was filled at 5 s. Only what was received before may use it: an event received
    /// later tells of a change the answer may not show.
    #[test]
    fn what_was_fetched_before_an_event_does_not_serve_it() {
        let (time, mut flights, url) = story(60_000);
        brings(&mut flights, &url, time.at(5000), "old");
        assert_eq!(asks(&mut flights, &url, 3000, time.at(6000)), "kept");
        assert_eq!(asks(&mut flights, &url, 4000, time.at(6000)), "kept");
        // Clocks may differ by a second.
        assert_eq!(asks(&mut flights, &url, 4001, time.at(6000)), "yours");
        assert_eq!(asks(&mut flights, &url, 5500, time.at(6000)), "yours");
    }

    #[test]
    fn what_is_too_old_serves_nobody() {
        let (time, mut flights, url) = story(2000);
        brings(&mut flights, &url, time.at(5000), "old");
        assert_eq!(asks(&mut flights, &url, 0, time.at(7000)), "kept");
        assert_eq!(asks(&mut flights, &url, 0, time.at(7001)), "yours");
        let (time, mut flights, url) = story(0);
        brings(&mut flights, &url, time.at(5000), "old");
        assert_eq!(asks(&mut flights, &url, 0, time.at(5000)), "yours", "nothing is kept");
    }

    /// Fetched at 10 s, then the clock is set back by nine, and an event comes at 2 s.
    #[test]
    fn a_clock_that_was_set_serves_nothing() {
        let (time, mut flights, url) = story(60_000);
        brings(&mut flights, &url, time.at(10_000), "old");
        let now = Moment { wall: noon(3000), ..time.at(12_000) };
        assert_eq!(asks(&mut flights, &url, 2000, now), "yours");
        let ahead = Moment { wall: noon(90_000), ..time.at(12_000) };
        assert_eq!(asks(&mut flights, &url, 2000, ahead), "yours");
    }

    #[tokio::test]
    async fn those_who_ask_at_once_share_one_request() {
        let (time, mut flights, url) = story(0);
        let Asked::Yours(mut first) = flights.ask(&url, noon(0), time.at(5000)) else { panic!() };
        // Not sent yet: it serves whoever asks before it is.
        let Asked::Joined(mut early) = flights.ask(&url, noon(5000), time.at(5000)) else {
            panic!()
        };
        first.turn().await;
        flights.begin(&url, time.at(5000));
        let Asked::Joined(mut old) = flights.ask(&url, noon(1000), time.at(5100)) else { panic!() };
        // Received when it was under way: these have to wait for the next.
        let Asked::Yours(mut second) = flights.ask(&url, noon(5050), time.at(5100)) else {
            panic!()
        };
        let Asked::Joined(mut late) = flights.ask(&url, noon(5090), time.at(5100)) else {
            panic!()
        };
        assert!(futures_are_pending(second.turn()), "one at a time");
        let answer = Ok(found("first"));
        flights.end(&url, time.at(5000), &answer);
        first.tell(answer);
        for ear in [&mut early, &mut old] {
            let heard = ear.wait_for(Option::is_some).await.unwrap().clone();
            assert_eq!(heard.unwrap().unwrap(), found("first"));
        }
        second.turn().await;
        flights.begin(&url, time.at(5200));
        flights.end(&url, time.at(5200), &Ok(found("second")));
        second.tell(Ok(found("second")));
        let heard = late.wait_for(Option::is_some).await.unwrap().clone();
        assert_eq!(heard.unwrap().unwrap(), found("second"));
        assert!(flights.by_url.is_empty());
    }

    /// Whether a future waits for something.
    fn futures_are_pending(future: impl Future) -> bool {
        let mut future = std::pin::pin!(future);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        future.as_mut().poll(&mut context).is_pending()
    }

    #[test]
    fn whoever_is_gone_is_waited_for_by_nobody() {
        let (time, mut flights, url) = story(0);
        drop(flights.ask(&url, noon(0), time.at(5000)));
        let Asked::Yours(ticket) = flights.ask(&url, noon(0), time.at(5000)) else { panic!() };
        flights.begin(&url, time.at(5000));
        drop(ticket);
        let Asked::Yours(mut next) = flights.ask(&url, noon(0), time.at(5000)) else { panic!() };
        assert!(!futures_are_pending(next.turn()));
        flights.give_up(&url);
        drop(next);
        assert_eq!(asks(&mut flights, &url, 0, time.at(5000)), "yours");
    }

    #[test]
    fn a_failure_is_told_and_not_kept() {
        let (time, mut flights, url) = story(60_000);
        let Asked::Yours(ticket) = flights.ask(&url, noon(0), time.at(5000)) else { panic!() };
        flights.begin(&url, time.at(5000));
        let answer = Err(Failure::broken_off());
        flights.end(&url, time.at(5000), &answer);
        ticket.tell(answer);
        assert_eq!(asks(&mut flights, &url, 0, time.at(5000)), "yours");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (time, mut flights, _) = story(3_600_000);
        let body = "x".repeat(limits::FETCH_KEPT_BYTES / 4);
        for number in 0..10 {
            let url: Arc<str> = format!("https://api.test/{number}").into();
            brings(&mut flights, &url, time.at(number), &body);
            brings(&mut flights, &url, time.at(number), &body);
            assert!(flights.kept.bytes <= limits::FETCH_KEPT_BYTES);
        }
        let known: usize = flights.kept.rows.iter().map(|(url, row)| size(url, &row.current)).sum();
        assert_eq!((flights.kept.bytes, flights.kept.rows.len()), (known, 3));
        for number in 0..2 * limits::FETCHES_KEPT as u64 {
            let url: Arc<str> = format!("https://api.test/{number}").into();
            brings(&mut flights, &url, time.at(100 + number), "");
        }
        assert_eq!(flights.kept.rows.len(), limits::FETCHES_KEPT);
        assert_eq!(flights.kept.order.len(), limits::FETCHES_KEPT);
        let last = time.at(100 + 2 * limits::FETCHES_KEPT as u64);
        let first: Arc<str> = "https://api.test/0".into();
        assert_eq!(asks(&mut flights, &first, -9000, last), "yours", "the oldest is gone");
    }
}
