//! One event, many times: in turn, or all at once.

use std::num::NonZeroUsize;
use std::sync::Arc;

use oncebox_verify::Draft;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::post::{Answer, Poster};

/// What to post, where, and how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where it goes.
    pub url: String,
    /// What goes there.
    pub draft: Draft,
    /// How many times in all.
    pub copies: NonZeroUsize,
    /// How many of them at once.
    pub concurrency: NonZeroUsize,
}

impl Plan {
    /// A plan to post one request once.
    pub fn once(url: impl Into<String>, draft: Draft) -> Self {
        let one = NonZeroUsize::MIN;
        Self { url: url.into(), draft, copies: one, concurrency: one }
    }
}

/// Carries out a plan and returns one answer per copy, in the order they were sent. Copies that go
/// at once wait for each other before the first byte, so that they really race.
pub async fn run(poster: &Poster, plan: &Plan) -> Vec<Answer> {
    let mut answers = Vec::with_capacity(plan.copies.get());
    while answers.len() < plan.copies.get() {
        let wave = plan.concurrency.get().min(plan.copies.get() - answers.len());
        answers.extend(race(poster, plan, wave).await);
    }
    answers
}

async fn race(poster: &Poster, plan: &Plan, copies: usize) -> Vec<Answer> {
    let line = Arc::new(Barrier::new(copies));
    let mut racers = JoinSet::new();
    for place in 0..copies {
        let (line, poster) = (Arc::clone(&line), poster.clone());
        let (url, draft) = (plan.url.clone(), plan.draft.clone());
        racers.spawn(async move {
            line.wait().await;
            (place, poster.post(&url, &draft).await)
        });
    }
    let mut answers = racers.join_all().await;
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
