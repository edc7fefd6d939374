use oncebox_verify::Roots;

use super::*;

const URL: &str = "https://keys.example.com/jwks";

fn wanted(kid: &str) -> WantedKey {
    WantedKey { url: URL.into(), kid: Some(kid.into()), form: WantedForm::KeySet }
}

fn set(kid: &str) -> Arc<FetchedKey> {
    let json = format!(r#"{{"keys":[{{"kid":"{kid}","kty":"oct"}}]}}"#);
    let now = Timestamp::UNIX_EPOCH;
    Arc::new(FetchedKey::parse(&wanted(kid), json.as_bytes(), &Roots::default(), now).unwrap())
}

fn at(begin: Instant, seconds: u64) -> Moment {
    Moment { steady: begin + Duration::from_secs(seconds), wall: Timestamp::UNIX_EPOCH }
}

/// What is to be done, in a word.
fn ask(cache: &mut Cache, kid: &str, now: Moment) -> &'static str {
    let wanted = wanted(kid);
    match cache.ask(&Place::of(&wanted, false), &wanted, now, || Ok(())) {
        Asked::Kept(_) => "kept",
        Asked::Stale(_) => "stale",
        Asked::Failed(_) => "failed",
        Asked::Joined(_) => "joined",
        // It is still under way as long as its ticket is.
        Asked::Yours(ticket) => {
            std::mem::forget(ticket);
            "yours"
        }
    }
}

fn end(cache: &mut Cache, now: Moment, kid: Option<&str>, max_age: Option<u64>) {
    let answer = match kid {
        Some(kid) => {
            let max_age = max_age.map(Duration::from_secs);
            Ok(Fetched { key: set(kid), max_age, served: Bytes::from_static(b"served") })
        }
        None => Err(KeyFailure::new("status", "503")),
    };
    cache.end(&Place::of(&wanted("a"), false), now, answer);
}

#[test]
fn a_key_is_kept_as_long_as_its_server_says_within_bounds() {
    for (max_age, kept_for) in
        [(None, 3600), (Some(0), 300), (Some(600), 600), (Some(9e9 as u64), 86_400)]
    {
        let (mut cache, begin) = (Cache::default(), Instant::now());
        assert_eq!(ask(&mut cache, "a", at(begin, 0)), "yours");
        assert_eq!(ask(&mut cache, "a", at(begin, 0)), "joined");
        end(&mut cache, at(begin, 0), Some("a"), max_age);
        assert_eq!(ask(&mut cache, "a", at(begin, kept_for - 1)), "kept");
        assert_eq!(ask(&mut cache, "a", at(begin, kept_for)), "yours", "{max_age:?}");
    }
}

#[test]
fn an_unknown_key_of_a_set_is_looked_for_once_a_minute() {
    let (mut cache, begin) = (Cache::default(), Instant::now());
    ask(&mut cache, "a", at(begin, 0));
    end(&mut cache, at(begin, 0), Some("a"), None);
    // The first refresh comes at once: the provider may have rotated just now.
    assert_eq!(ask(&mut cache, "b", at(begin, 1)), "yours");
    assert_eq!(ask(&mut cache, "a", at(begin, 1)), "kept");
    end(&mut cache, at(begin, 2), Some("a"), None);
    // The provider may have it by now, and nobody looks.
    assert_eq!(ask(&mut cache, "b", at(begin, 2)), "failed");
    assert_eq!(ask(&mut cache, "c", at(begin, 60)), "failed");
    assert_eq!(ask(&mut cache, "a", at(begin, 60)), "kept");
    assert_eq!(ask(&mut cache, "c", at(begin, 61)), "yours");
    end(&mut cache, at(begin, 62), Some("c"), None);
    assert_eq!(ask(&mut cache, "c", at(begin, 62)), "kept");
}

#[test]
fn an_old_key_does_while_its_server_is_down_but_not_for_ever() {
    let (mut cache, begin) = (Cache::default(), Instant::now());
    ask(&mut cache, "a", at(begin, 0));
    end(&mut cache, at(begin, 0), Some("a"), None);
    assert_eq!(ask(&mut cache, "a", at(begin, 3600)), "yours");
    end(&mut cache, at(begin, 3601), None, None);
    assert_eq!(ask(&mut cache, "a", at(begin, 3602)), "stale");
    // Nobody knows whether the provider has this one by now.
    assert_eq!(ask(&mut cache, "b", at(begin, 3602)), "failed");
    assert_eq!(ask(&mut cache, "a", at(begin, 3611)), "yours");
    end(&mut cache, at(begin, 3600 + 86_400), None, None);
    assert_eq!(ask(&mut cache, "a", at(begin, 3600 + 86_400)), "failed");
}

#[test]
fn a_server_that_failed_is_left_alone_for_a_moment() {
    let (mut cache, begin) = (Cache::default(), Instant::now());
    ask(&mut cache, "a", at(begin, 0));
    end(&mut cache, at(begin, 0), None, None);
    assert_eq!(ask(&mut cache, "a", at(begin, 9)), "failed");
    assert_eq!(ask(&mut cache, "a", at(begin, 10)), "yours");
}

#[test]
fn a_request_that_ended_without_a_word_is_made_again() {
    let (mut cache, begin) = (Cache::default(), Instant::now());
    let wanted = wanted("a");
    let place = Place::of(&wanted, false);
    drop(cache.ask(&place, &wanted, at(begin, 0), || Ok(())));
    assert_eq!(ask(&mut cache, "a", at(begin, 0)), "yours");
}

#[test]
fn places_and_requests_are_bounded() {
    let (mut cache, begin) = (Cache::default(), Instant::now());
    let mut ask_at = |number: usize, may_ask: bool| {
        let wanted = WantedKey { url: format!("{URL}/{number}"), ..wanted("a") };
        let place = Place::of(&wanted, false);
        let may_ask = || may_ask.then_some(()).ok_or_else(KeyFailure::too_often);
        let asked = cache.ask(&place, &wanted, at(begin, 0), may_ask);
        let failure = match asked {
            Asked::Failed(failure) => Some(failure.code()),
            Asked::Yours(ticket) => {
                std::mem::forget(ticket);
                None
            }
            _ => Some("other"),
        };
        (failure, cache.places.len())
    };
    assert_eq!(ask_at(0, false).0, Some("pace"));
    for number in 0..FLIGHTS_MAX {
        assert_eq!(ask_at(number, true).0, None);
    }
    for number in FLIGHTS_MAX..2 * PLACES_MAX {
        let (failure, places) = ask_at(number, true);
        assert_eq!(failure, Some("busy"));
        assert!(places <= PLACES_MAX);
    }
}

/// Whoever names places that have no key pushes out others such, and no key.
#[test]
fn a_key_outlasts_any_number_of_places_without_one() {
    let (mut cache, begin) = (Cache::default(), Instant::now());
    ask(&mut cache, "a", at(begin, 0));
    end(&mut cache, at(begin, 0), Some("a"), None);
    for number in 0..2 * PLACES_MAX {
        let now = at(begin, 1 + number as u64);
        let wanted = WantedKey { url: format!("{URL}/{number}"), ..wanted("a") };
        let place = Place::of(&wanted, false);
        drop(cache.ask(&place, &wanted, now, || Ok(())));
        cache.end(&place, now, Err(KeyFailure::new("status", "404")));
    }
    assert_eq!(cache.places.len(), PLACES_MAX);
    assert_eq!(ask(&mut cache, "a", at(begin, 600)), "kept");
    let newest = WantedKey { url: format!("{URL}/{}", 2 * PLACES_MAX - 1), ..wanted("a") };
    assert!(cache.places.contains_key(&Place::of(&newest, false)));
    let oldest = WantedKey { url: format!("{URL}/0"), ..wanted("a") };
    assert!(!cache.places.contains_key(&Place::of(&oldest, false)));
}

fn published(fresh_until: i64) -> PublishedKey {
    let at = |second| Timestamp::from_second(second).unwrap();
    let (fresh_until, kept_at) = (at(fresh_until), at(0));
    PublishedKey { url: URL.into(), allow_private: false, served: vec![1], fresh_until, kept_at }
}

/// A key that was kept over a restart is as old as it is: fresh, good while its server is down, or
/// not good any more. It is taken up once.
#[test]
fn a_key_from_before_a_restart_is_as_old_as_it_is() {
    let day = 86_400;
    for (fresh_until, is_there) in
        [(60, "kept"), (9 * day, "kept"), (-60, "yours"), (-2 * day, "yours")]
    {
        let (mut cache, begin) = (Cache::default(), Instant::now() + 9 * STALE);
        cache.remember(vec![published(fresh_until)]);
        let (place, now) = (Place::of(&wanted("a"), false), at(begin, 0));
        assert!(cache.remembered(&Place::of(&wanted("a"), true)).is_none(), "another's");
        let kept = cache.remembered(&place).unwrap();
        cache.take_up(&place, now, Some((set("a"), kept.fresh_until)));
        assert!(cache.remembered(&place).is_none());
        assert_eq!(ask(&mut cache, "a", now), is_there, "{fresh_until}");
        let is_usable = cache.usable(&place, &wanted("a"), now).is_some();
        assert_eq!(is_usable, fresh_until > -day, "{fresh_until}");
        if fresh_until > day {
            let late = at(begin, day as u64 + 1);
            assert_eq!(ask(&mut cache, "a", late), "yours", "a wrong clock keeps nothing for long");
        }
    }
    let (mut cache, begin) = (Cache::default(), Instant::now());
    cache.remember(vec![published(60)]);
    cache.take_up(&Place::of(&wanted("a"), false), at(begin, 0), None);
    assert_eq!(ask(&mut cache, "a", at(begin, 0)), "yours", "what is no key is forgotten");
}

/// What was served is told once, for the key that proved a request.
#[test]
fn a_key_that_proved_a_request_is_told_once() {
    let (mut cache, begin) = (Cache::default(), Instant::now());
    let place = Place::of(&wanted("a"), false);
    ask(&mut cache, "a", at(begin, 0));
    end(&mut cache, at(begin, 0), Some("a"), Some(600));
    let key = cache.usable(&place, &wanted("a"), at(begin, 1)).unwrap();
    assert!(cache.proved(&place, &set("a")).is_none(), "another key");
    let (served, fresh_until) = cache.proved(&place, &key).unwrap();
    assert_eq!((&*served, fresh_until), (&b"served"[..], begin + Duration::from_secs(600)));
    assert!(cache.proved(&place, &key).is_none());
}
