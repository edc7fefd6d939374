//! Pushes that are signed as the provider would: what goes out verifies by the rules of the
//! provider's entry, however long after the event came in.

use http::{HeaderMap, HeaderName, HeaderValue};
use oncebox::clock::Clock as _;
use oncebox::delivery::State;
use oncebox::store::DeliveryFilter;
use oncebox_drill::Event;
use oncebox_server::config::{Config, Environment};
use oncebox_testkit::destination::{Behaviour, Destination, Received};
use oncebox_testkit::wait;
use oncebox_verify::{
    Draft, Field, Keyring, MadeUp, Place, Provider, Request, Scheme, Secret, TokenPlace, Trust,
    catalogue, events, made_up, verify,
};

use crate::bed::{Bed, Place as StorePlace, configuration, wire};
use crate::every_provider::{Played, URL, played_providers};

const TWO_DAYS: i64 = 2 * 24 * 60 * 60;

const STORE: &str = "[store]\nmaster_secret = \"mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm\"\n";

/// A route that signs as its source's provider, and further keys of it.
fn route(source: &str, destination: &Destination, more: &str) -> String {
    let to = destination.address();
    format!(
        "[routes.{source}]\nsources = [\"{source}\"]\npush = \"http://{to}/{source}\"\n\
         allow_private = true\nsign = \"provider\"\n{more}\
         retry = {{ max_attempts = 100, base = \"500ms\", cap = \"1s\" }}\n"
    )
}

/// What a consumer got, as the provider's SDK would see it.
struct Seen {
    url: String,
    headers: HeaderMap,
    push: Received,
}

impl Seen {
    fn new(destination: &Destination, push: Received) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in &push.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        Self { url: format!("http://{}{}", destination.address(), push.target), headers, push }
    }

    fn request(&self) -> Request<'_> {
        let Self { url, headers, push } = self;
        Request { method: &push.method, url, headers, body: &push.body }
    }
}

impl Bed {
    /// Waits until so many deliveries are processed.
    async fn until_processed(&self, count: usize) {
        let filter =
            DeliveryFilter { state: Some(State::Processed), limit: 1000, ..Default::default() };
        let patience = std::time::Instant::now() + wait::DEADLINE;
        while self.server.inbox.store.deliveries(&filter).await.unwrap().len() < count {
            assert!(std::time::Instant::now() < patience, "{count} are not processed in time");
            tokio::task::yield_now().await;
        }
    }

    async fn send(&self, draft: &Draft) {
        let answer = self.raw(&wire(draft.url.strip_prefix(URL).unwrap(), draft)).await;
        assert!((200..300).contains(&answer.status), "{}: {answer:?}", draft.url);
    }
}

/// The secret of the route, which is another than the source's.
fn other(provider: &Provider) -> MadeUp {
    made_up(provider, &[8; 32]).unwrap()
}

/// What `check` says of a configuration that it refuses; each has a place and a hint.
fn problems(text: &str) -> Vec<String> {
    let config = Config::parse("test.toml", text, Environment::default());
    let Err(error) = config.and_then(|config| config.ready()) else { return Vec::new() };
    let told = error.problems().iter().map(|problem| {
        assert!(problem.line_and_column().is_some(), "{problem} has no place");
        assert_ne!(problem.hint(), "", "{problem}");
        problem.message().to_owned()
    });
    told.collect()
}

/// Why `check` refuses a route that signs as this provider.
fn refusal(played: &Played, destination: &Destination) -> Option<String> {
    let secret = other(played.provider).secret;
    let secret = toml::Value::from(secret.expose());
    let route = route(&played.provider.name, destination, &format!("secret = {secret}\n"));
    let told = problems(&format!("{STORE}{}{route}", played.source));
    (!told.is_empty()).then(|| told.join("\n"))
}

/// Whether a provider has nothing but key pairs, or a time inside the body: all that may be
/// refused.
fn may_be_refused(provider: &Provider) -> bool {
    provider.schemes.iter().all(|scheme| match scheme {
        Scheme::Signature(signature) => {
            let stamp = signature.timestamp.as_ref().map(|stamp| &stamp.place);
            signature.algorithm.is_asymmetric() || matches!(stamp, Some(Place::Json(_)))
        }
        Scheme::Jws(jws) => !jws.algorithms.iter().all(|algorithm| algorithm.is_hmac()),
        Scheme::Special(special) => {
            ["Sns", "Ebay", "HttpMessage"].contains(&format!("{special:?}").as_str())
        }
        _ => false,
    })
}

/// Every entry of the catalogue: `check` refuses it and says why, or what is pushed two days later
/// under another secret is what the provider would send then.
#[tokio::test(flavor = "multi_thread")]
async fn every_provider_is_signed_for_afresh_or_refused() {
    let destination = Destination::start();
    let (mut refused, mut signed) = (Vec::new(), Vec::new());
    for played in played_providers() {
        match refusal(&played, &destination) {
            None => signed.push(played),
            Some(why) => {
                let name = &played.provider.name;
                assert!(may_be_refused(played.provider), "{name} must be signed for: {why}");
                assert!(why.contains(&format!("cannot sign as `{name}`")), "{why}");
                refused.push(name.to_string());
            }
        }
    }
    assert!(signed.len() >= 200, "{} are signed for, not {refused:?}", signed.len());
    for name in ["discord", "paypal", "mailgun", "linear", "wix"] {
        assert!(refused.iter().any(|refused| refused == name), "{name}");
    }
    let parts = signed.iter().map(|played| {
        let name = &played.provider.name;
        let secret = toml::Value::from(other(played.provider).secret.expose());
        let route = route(name, &destination, &format!("secret = {secret}\n"));
        format!("{}{route}", played.source)
    });
    let bed = Bed::configured(&format!("{STORE}{}", parts.collect::<String>())).await;
    destination.always(Behaviour::status(401));
    let then = bed.clock.now();
    let mut sent = Vec::new();
    for played in &signed {
        let draft = played.simulator.draft(&played.url(), &Event::new("evt_0001"), then).unwrap();
        bed.send(&draft).await;
        sent.push(draft);
    }
    let bed = bed.restarted_after(TWO_DAYS).await;
    destination.always(Behaviour::status(200));
    bed.until_processed(signed.len()).await;
    let pushes = destination.requests();
    let mut wrong = Vec::new();
    for (played, sent) in signed.iter().zip(&sent) {
        let name = &played.provider.name;
        let path = format!("/{name}");
        let is_it = |push: &&Received| push.target.split('?').next() == Some(&path);
        let last = pushes.iter().rfind(is_it).expect("a push").clone();
        let seen = Seen::new(&destination, last);
        let problems = [proof(played, sent, &seen, &bed), content(played, sent, &seen)].concat();
        wrong.extend(problems.iter().map(|problem| format!("{name}: {problem}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with the proof of a push.
fn proof(played: &Played, sent: &Draft, seen: &Seen, bed: &Bed) -> Vec<String> {
    let mut wrong = Vec::new();
    let (provider, now) = (played.provider, bed.clock.now());
    let MadeUp { secret, .. } = other(provider);
    let settings = played.settings.clone();
    let keyring = Keyring::with_settings(provider, vec![secret], settings).unwrap();
    if let Err(rejection) = verify(provider, &keyring, &seen.request(), now) {
        wrong.push(format!("{rejection}: {:?}", seen.push));
    }
    if played.simulator.judge(&with(sent, seen), now).is_ok() {
        wrong.push("the source's secret signed".to_owned());
    }
    let received = (now - jiff::SignedDuration::from_secs(TWO_DAYS)).to_string();
    if seen.push.header("oncebox-received-at") != Some(&received) {
        wrong.push("its true age is not told".to_owned());
    }
    let webhook = |name: &&HeaderName| name.as_str().starts_with("webhook-");
    let ours = |name: &&HeaderName| !sent.headers.contains_key(*name);
    wrong.extend(seen.headers.keys().filter(webhook).filter(ours).map(ToString::to_string));
    wrong
}

/// What changed of an event, but for its proof.
fn content(played: &Played, sent: &Draft, seen: &Seen) -> Vec<String> {
    let mut wrong = Vec::new();
    let provider = played.provider;
    let (came, went) = (sent.request(), seen.request());
    let (came, went) = (events(provider, &came).unwrap(), events(provider, &went).unwrap());
    let (came, mut went) = (&came[0].event, went[0].event.clone());
    let body = |body: &[u8]| without_proof(provider, body);
    let (was, is) = (body(&sent.body), body(&seen.push.body));
    if was != is {
        let (was, is) = (String::from_utf8_lossy(&was), String::from_utf8_lossy(&is));
        wrong.push(format!("the content was {was}, and is {is}"));
    }
    // The digest of a body that has the proof in it follows from the proof.
    let has_proof_inside = body(&sent.body) != sent.body;
    if came.trust == Trust::Digest && (has_proof_inside || !played.is_known_again()) {
        went.id.clone_from(&came.id);
    }
    // Twitch orders by the time that it signs, which is fresh; ours stays.
    let stamps = provider.version.iter().filter_map(|version| match &version.field {
        Field::Header(name) => HeaderName::from_bytes(name.as_bytes()).ok(),
        _ => None,
    });
    let is_stamp = |name: HeaderName| provider.schemes.iter().any(|scheme| is_proof(scheme, &name));
    if stamps.into_iter().any(is_stamp) {
        went.version = came.version;
    }
    let version = came.version.map(|version| version.to_string());
    if seen.push.header("oncebox-object-version") != version.as_deref() {
        wrong.push("it has another version".to_owned());
    }
    if *came != went {
        wrong.push(format!("it was {came:?}, and is {went:?}"));
    }
    if played.is_known_again() && seen.push.header("oncebox-event-id") != Some(&*came.id) {
        wrong.push(format!("it is called {:?}", seen.push.header("oncebox-event-id")));
    }
    for (header, value) in sent.headers.iter().filter(|(name, _)| *name != "authorization") {
        let is_proof = provider.schemes.iter().any(|scheme| is_proof(scheme, header));
        if !is_proof && seen.headers.get(header) != Some(value) {
            wrong.push(format!("{header} was {value:?}, and is {:?}", seen.headers.get(header)));
        }
    }
    wrong
}

/// What was pushed, as a draft.
fn with(sent: &Draft, seen: &Seen) -> Draft {
    let (url, headers) = (seen.url.clone(), seen.headers.clone());
    Draft { method: sent.method.clone(), url, headers, body: seen.push.body.clone() }
}

fn is_proof(scheme: &Scheme, header: &HeaderName) -> bool {
    let stamp = scheme.signature().and_then(|signature| signature.timestamp.as_ref());
    let is_stamp = match stamp.map(|stamp| &stamp.place) {
        Some(Place::Header(name) | Place::Label { header: name, .. }) => header == name.as_ref(),
        _ => false,
    };
    let is_numbered = match scheme.signature().map(|signature| &signature.place) {
        Some(Place::Numbered(start)) => header.as_str().starts_with(start.as_ref()),
        Some(Place::AnyOf(names)) => names.iter().any(|name| header == name.as_ref()),
        _ => false,
    };
    // Contentful and Plivo have more in headers than the signature.
    let is_special = matches!(scheme, Scheme::Special(_)) && header.as_str().starts_with("x-");
    is_stamp || is_numbered || is_special || scheme.header().is_some_and(|name| header == name)
}

/// A body without the proof that is a part of it.
fn without_proof(provider: &Provider, body: &[u8]) -> Vec<u8> {
    let mut text = String::from_utf8(body.to_vec()).unwrap();
    for scheme in provider.schemes.iter() {
        let pointer = match scheme {
            Scheme::Signature(signature) => match &signature.place {
                Place::Json(pointer) | Place::Item(pointer) => pointer.as_ref(),
                Place::Form(name) => return fields_but(&text, name),
                _ => continue,
            },
            Scheme::Token(token) => match &token.place {
                TokenPlace::Json(pointer) | TokenPlace::Item(pointer) => pointer.as_ref(),
                _ => continue,
            },
            Scheme::Special(special) if format!("{special:?}") == "Braintree" => {
                return fields_but(&text, "bt_signature");
            }
            _ => continue,
        };
        // The proof is the one string after its key.
        let key = format!("\"{}\":\"", pointer.rsplit('/').next().unwrap());
        let start = text.find(&key).expect("a proof") + key.len();
        let end = start + text[start..].find('"').unwrap();
        text.replace_range(start..end, "");
    }
    text.into_bytes()
}

fn fields_but(form: &str, name: &str) -> Vec<u8> {
    let kept = form.split('&').filter(|pair| pair.split('=').next() != Some(name));
    kept.collect::<Vec<_>>().join("&").into_bytes()
}

/// Events that came together travel alone, each in the envelope of its provider.
async fn events_of_a_batch_travel_alone(place: StorePlace) {
    let destination = Destination::start();
    let xero = catalogue::find("xero").unwrap();
    let source = "[sources.xero]\nprovider = \"xero\"\nsecrets = [\"canary-xero-secret\"]\n";
    let bed = Bed::on_place(place, &format!("{source}{}", route("xero", &destination, ""))).await;
    let item = |n: u32| {
        format!(
            r#"{{"tenantId":"t","eventCategory":"INVOICE","resourceId":"{n}","eventDateUtc":"{n}","amount":{n}.00}}"#
        )
    };
    let whole = |items: &[String]| {
        format!(r#"{{"events": [{}], "firstEventSequence": 7}}"#, items.join(" , "))
    };
    let mut draft = bed.signed("xero", "canary-xero-secret", "unused");
    draft.body = whole(&[item(1), item(2), item(3)]).into_bytes();
    let secret = Secret::new("canary-xero-secret");
    let draft = oncebox_verify::sign(xero, &secret, draft, bed.clock.now()).unwrap();
    assert_eq!(bed.post("xero", &draft).await.status, 200);
    bed.until_processed(3).await;
    let keyring = Keyring::new(xero, vec![secret]).unwrap();
    let mut bodies = Vec::new();
    for push in destination.requests() {
        let seen = Seen::new(&destination, push);
        verify(xero, &keyring, &seen.request(), bed.clock.now()).expect("a signature of Xero");
        bodies.push(String::from_utf8(seen.push.body).unwrap());
    }
    bodies.sort();
    let alone = |n| format!(r#"{{"events":[{}],"firstEventSequence":7}}"#, item(n));
    assert_eq!(bodies, [alone(1), alone(2), alone(3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_batch_travel_alone_from_sqlite() {
    events_of_a_batch_travel_alone(StorePlace::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_batch_travel_alone_from_postgres() {
    events_of_a_batch_travel_alone(StorePlace::postgres().await).await;
}

/// A handler that has the old secret refuses, and what it refused comes again under the new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_reload_with_another_secret_counts_from_the_next_push() {
    let destination = Destination::start();
    let config = |secrets: &str, more: &str| {
        let source = format!("[sources.stripe]\nprovider = \"stripe\"\nsecrets = [{secrets}]\n");
        format!("{source}{}", route("stripe", &destination, more))
    };
    let bed = Bed::configured(&config("\"whsec_first_secret\"", "")).await;
    let stripe = catalogue::find("stripe").unwrap();
    let signer = |push: &Received| {
        let seen = Seen::new(&destination, push.clone());
        let verifies = |secret: &&&str| {
            let keyring = Keyring::new(stripe, vec![Secret::new(**secret)]).unwrap();
            verify(stripe, &keyring, &seen.request(), bed.clock.now()).is_ok()
        };
        let secrets = ["whsec_first_secret", "whsec_second_secret", "whsec_of_the_route"];
        secrets.iter().find(verifies).map(ToString::to_string)
    };
    let attempts = |count: usize| {
        tokio::task::block_in_place(|| destination.wait_for(count))[count - 1].clone()
    };
    destination.always(Behaviour::status(400));
    let event = bed.signed("stripe", "whsec_first_secret", "evt_1");
    assert_eq!(bed.post("stripe", &event).await.status, 202);
    assert_eq!(signer(&attempts(1)).as_deref(), Some("whsec_first_secret"));

    let both = config("\"whsec_second_secret\", \"whsec_first_secret\"", "");
    bed.server.reload(configuration(&both)).await.unwrap();
    let so_far = destination.requests().len();
    // One may have been on its way during the reload.
    let push = attempts(so_far + 2);
    assert_eq!(signer(&push).as_deref(), Some("whsec_second_secret"));
    let attempt: usize = push.header("oncebox-attempt").unwrap().parse().unwrap();
    assert!(attempt > 1, "a refusal is retried");

    let own = config("\"whsec_second_secret\"", "secret = \"whsec_of_the_route\"\n");
    bed.server.reload(configuration(&own)).await.unwrap();
    let so_far = destination.requests().len();
    assert_eq!(signer(&attempts(so_far + 2)).as_deref(), Some("whsec_of_the_route"));
    destination.always(Behaviour::status(200));
    bed.until_processed(1).await;
}

/// What Twilio signs is the URL that the handler believes to be called by.
#[tokio::test(flavor = "multi_thread")]
async fn the_url_is_that_of_the_push_or_the_one_told() {
    let destination = Destination::start();
    let source = format!(
        "[sources.twilio-json]\nprovider = \"twilio-json\"\nsecrets = [\"canary-twilio-token\"]\n\
         public_url = \"{URL}/in/twilio-json\"\n"
    );
    let public = "https://app.example.com/hooks?tenant=1";
    let more = format!("sign_url = \"{public}\"\n");
    let route = route("twilio-json", &destination, &more);
    let bed = Bed::configured(&format!("{source}{route}")).await;
    let played = played_providers().into_iter().find(|it| it.provider.name == "twilio-json");
    let provider = played.unwrap().provider;
    let secret = Secret::new("canary-twilio-token");
    let simulator = oncebox_drill::Simulator::new(provider.clone(), secret).unwrap();
    let url = format!("{URL}/in/twilio-json");
    let draft = simulator.draft(&url, &Event::new("1"), bed.clock.now()).unwrap();
    bed.send(&draft).await;
    bed.until_processed(1).await;
    let mut seen = Seen::new(&destination, destination.requests().remove(0));
    assert!(seen.push.target.starts_with("/twilio-json?bodySHA256="), "{}", seen.push.target);
    assert!(simulator.judge(&with(&draft, &seen), bed.clock.now()).is_err());
    let (_, added) = seen.push.target.split_once('?').unwrap();
    seen.url = format!("{public}&{added}");
    simulator.judge(&with(&draft, &seen), bed.clock.now()).expect("the URL that was told");
    assert_eq!(seen.push.header("oncebox-signed-url"), None);
}

/// What `check` says of a route, each with its place and a hint.
#[test]
fn check_says_why_a_route_cannot_sign() {
    let of = |source: &str, route: &str| {
        let signs = "sources = [\"it\"]\nsign = \"provider\"\nallow_unverified = true\n";
        problems(&format!("[sources.it]\n{source}\n[routes.app]\n{signs}{route}")).join("\n")
    };
    let push = "push = \"https://app.example.com/hook\"\n";
    let stripe = "provider = \"stripe\"\nsecrets = [\"canary-secret\"]";
    assert_eq!(of(stripe, push), "");
    let vapi = "provider = \"vapi\"\nsecrets = [\"canary-secret\"]";
    assert_eq!(of(vapi, "push = \"http://127.0.0.1/x\"\nallow_private = true\n"), "");
    assert_eq!(of(vapi, push), "");
    let pandadoc = "provider = \"pandadoc\"\nsecrets = [\"canary-secret\"]";
    for (source, route, said) in [
        (stripe, "pull = true\n", "pulled from"),
        (stripe, &format!("{push}sign_url = \"https://a.example.com/\"\n"), "signs a URL"),
        (stripe, &format!("{push}permanent = [400, 410]\n"), "always retried"),
        (stripe, &format!("{push}secret = \"-----BEGIN PUBLIC KEY-----\"\n"), "cannot sign as"),
        (vapi, "push = \"http://app.example.com/hook\"\n", "could read"),
        (vapi, "push = \"http://10.0.0.1/hook\"\nallow_private = true\n", "could read"),
        (pandadoc, "push = \"https://app.example.com/?signature=1\"\n", "in its query"),
        ("provider = \"capture\"\nallow_unverified = true", push, "cannot sign as source"),
        ("provider = \"mailgun\"\nsecrets = [\"canary-secret\"]", push, "part of the body"),
    ] {
        let told = of(source, route);
        assert!(told.contains(said), "{said}: {told}");
    }
}
