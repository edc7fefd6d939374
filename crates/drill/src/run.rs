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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::HeaderMap;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A receiver that answers nobody before `together` requests are under way.
    async fn receiver(together: usize, served: Arc<AtomicUsize>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let line = Arc::new(Barrier::new(together));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (line, served) = (Arc::clone(&line), Arc::clone(&served));
                tokio::spawn(async move {
                    let mut head = [0; 4096];
                    while stream.read(&mut head).await.unwrap_or(0) > 0 {
                        line.wait().await;
                        served.fetch_add(1, Ordering::SeqCst);
                        let answer = b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\nok";
                        stream.write_all(answer).await.unwrap();
                    }
                });
            }
        });
        url
    }

    fn draft() -> Draft {
        let (method, url) = ("POST".to_owned(), "http://example.com/".to_owned());
        Draft { method, url, headers: HeaderMap::new(), body: b"{}".to_vec() }
    }

    #[tokio::test]
    async fn copies_that_go_at_once_are_under_way_together() {
        let served = Arc::new(AtomicUsize::new(0));
        let url = receiver(4, Arc::clone(&served)).await;
        let four = NonZeroUsize::new(4).unwrap();
        let eight = NonZeroUsize::new(8).unwrap();
        let plan = Plan { copies: eight, concurrency: four, ..Plan::once(url, draft()) };

        let answers = run(&Poster::new().unwrap(), &plan).await;
        assert_eq!(answers.len(), 8);
        assert!(answers.iter().all(|answer| answer.is_success() && answer.body == b"ok"));
        assert_eq!(served.load(Ordering::SeqCst), 8);
    }

    #[tokio::test]
    async fn nobody_there_is_an_answer_without_a_status() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let plan = Plan::once(format!("http://{free}/"), draft());
        let answers = run(&Poster::new().unwrap(), &plan).await;
        assert_eq!(answers[0].status, None);
        assert!(answers[0].error.as_deref().unwrap().contains("refused"), "{:?}", answers[0]);
    }
}
