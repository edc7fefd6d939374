//! Fetching, against an API that behaves as it likes: what it was asked, what the consumer was
//! handed, and what the store says came of it.

use oncebox_testkit::destination::{Behaviour, Destination};
use oncebox_verify::{Draft, SampleEvent, catalogue, sample};

use crate::bed::{QUICK, signed};

mod config;
mod handed;
mod handlers;
mod hostile;
mod outcomes;
mod secrets;
mod shared;

/// What lets the route fetch. Nobody may ever see it but the API.
pub(crate) const KEY: &str = "sk_canary_of_the_api";

/// The keys of a route that fetches invoices from the API, and further keys of its `fetch`.
fn fetching(api: &Destination, more: &str) -> String {
    let port = api.address().port();
    format!("{QUICK}{}", fetch(&format!("http://api.test:{port}/v1/invoices/{{object}}"), more))
}

fn fetch(url: &str, more: &str) -> String {
    format!("fetch = {{ url = \"{url}\", bearer = \"{KEY}\", allow_private = true{more} }}\n")
}

/// The API has this object, under any URL.
fn object(body: &str) -> Behaviour {
    Behaviour::Answer {
        status: 200,
        headers: vec![("Content-Type".into(), "application/json; charset=utf-8".into())],
        body: body.as_bytes().to_vec(),
    }
}

/// An API that has an object.
fn api(body: &str) -> Destination {
    let api = Destination::start();
    api.always(object(body));
    api
}

/// An event of Stripe's about any object, signed now.
fn event_about(id: &str, event_type: &str, object: Option<&str>) -> Draft {
    let stripe = catalogue::find("stripe").unwrap();
    let at = jiff::Timestamp::from_second(1_790_000_000).unwrap();
    signed(sample(stripe, &SampleEvent { id, event_type, at, object }))
}
