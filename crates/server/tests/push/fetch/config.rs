//! What `fetch` may say in the configuration, and how it says what is wrong.

use oncebox_server::config::{Config, Environment, Problem};

const REST: &str = "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"12345678\"]\n\
                    [sources.b]\nprovider = \"hmac\"\nsecrets = [\"87654321\"]\n\
                    [routes.r]\nsources = [\"a\"]\nevents = [\"invoice.*\"]\n\
                    secret = \"whsec_c2VjcmV0LW9mLXJvdXRl\"\n";

const URL: &str = "url = \"https://api.example.com/{object}\"";

fn told(problems: &[Problem]) -> String {
    let told = |problem: &Problem| format!("{} | {}", problem.message(), problem.hint());
    problems.iter().map(told).collect::<Vec<_>>().join("\n")
}

/// What is wrong with a route that pushes and has these keys.
fn errors(keys: &str) -> String {
    let text = format!("{REST}push = \"https://example.com/\"\n{keys}\n");
    let environment = Environment::from([("LINES", "two\nlines-of-it"), ("FINE", "sk_fine_one")]);
    match Config::parse_ready("oncebox.toml", &text, environment) {
        Err(error) => told(error.problems()),
        Ok(_) => String::new(),
    }
}

fn warnings(keys: &str) -> String {
    let text = format!("{REST}push = \"https://example.com/\"\n{keys}\n");
    let ready = Config::parse_ready("oncebox.toml", &text, Environment::default());
    told(&ready.unwrap_or_else(|error| panic!("{}", error.render(false))).1.warnings)
}

#[test]
fn mistakes_are_refused() {
    let with = |more: &str| errors(&format!("fetch = {{ {URL}, {more} }}"));
    let url = |url: &str| errors(&format!("fetch = {{ url = \"{url}\" }}"));
    for (found, expected) in [
        (errors("fetch = {}"), "`fetch` has no `url`"),
        (errors("fetch = \"https://x/\""), "must be a table"),
        (url("https://api.example.com/{objekt}"), "known here: {object}, {event_id}, {type}"),
        (url("https://{source}.example.com/"), "an event must not choose whom to ask"),
        (url("https://me:pw@example.com/{object}"), "credentials go into `bearer`"),
        (url("/v1/{object}"), "it is no http or https URL"),
        (url("https://api.example.com/{object}#x"), "has a `#` in it"),
        (with("type = [\"x\"]"), "unknown key `routes.r.fetch.type` | did you mean `types`?"),
        (with("types = []"), "`types` names no event type"),
        (with("hand_over = \"both\""), "must be \"envelope\" or \"object\""),
        (with("missing = \"skip\""), "must be \"deliver\" or \"dead\""),
        (with("timeout = \"0s\""), "`timeout` must be more than 0 and at most 5m"),
        (with("cache = \"2h\""), "`cache` must be at most 1h"),
        (with("rate = 0"), "`rate` is 0"),
        (with("max_body = \"1GiB\""), "`max_body` must be between 1KiB and 16MiB"),
        (with("headers = { \"a b\" = \"x\" }"), "cannot be the name of a header"),
        (with("headers = { Host = \"x\" }"), "the header `Host` is not yours to set"),
        (with("headers = { Accept = 1 }"), "the header `Accept` must be env:NAME"),
        (with("headers = { x-a = \"1\", X-A = \"2\" }"), "is there twice"),
        (with("headers = { x-a = \"env:UNSET\" }"), "UNSET is not set"),
        (with("headers = { x-a = \"env:LINES\" }"), "cannot hold what is to be sent there"),
        (with("bearer = \"env:UNSET\""), "UNSET is not set"),
        (with("bearer = \"short\""), "fewer than 8"),
        (with("bearer = \"env:LINES\""), "look for a line break"),
        (
            with("bearer = \"env:FINE\", headers = { authorization = \"x\" }"),
            "both `bearer` and the header",
        ),
    ] {
        assert!(found.contains(expected), "should tell: {expected}\ntells: {found}");
    }
    assert_eq!(with("bearer = \"env:FINE\", headers = { X-A = \"1\" }"), "");
}

#[test]
fn a_route_that_is_pulled_from_fetches_nothing() {
    let rest = REST.replace("secret = \"whsec_c2VjcmV0LW9mLXJvdXRl\"\n", "");
    let text = format!("{rest}pull = true\nfetch = {{ {URL} }}\n");
    let config = Config::parse("oncebox.toml", &text, Environment::default()).unwrap();
    let error = config.ready().unwrap_err();
    let [problem] = error.problems() else { panic!("{error}") };
    assert_eq!(problem.message(), "route `r` has `fetch`, and workers elsewhere pull from it");
    assert!(problem.hint().contains("let the worker ask for what it needs"), "{}", problem.hint());
    assert_eq!(problem.line_and_column().unwrap().0, 11);
    config.ready_for(&|route| route == "r").expect("a handler may have it");
}

#[test]
fn what_is_probably_not_meant_is_warned_about() {
    let with = |more: &str| warnings(&format!("fetch = {{ {URL}{more} }}"));
    assert_eq!(with(""), "");
    assert_eq!(with(", types = [\"*.paid\", \"invoice.voided\"]"), "");
    let url =
        |url: &str| warnings(&format!("fetch = {{ url = \"{url}\", bearer = \"12345678\" }}"));
    for (found, expected) in [
        (with(", types = [\"customer.*\"]"), "fetches for `customer.*` and takes no such event"),
        (with(", cache = \"10m\""), "what is handed over may be 10m old"),
        (url("http://api.example.com/{object}"), "go over the network in the clear"),
        (url("https://10.0.0.1/{object}"), "from an address that is not public"),
        (url("https://api.example.com/all"), "the same URL is fetched for every event"),
        (
            warnings(&format!("concurrency = 100\nfetch = {{ {URL}, rate = 1 }}")),
            "1 fetches per second are too few",
        ),
    ] {
        assert!(found.contains(expected), "should tell: {expected}\ntells: {found}");
        assert!(found.lines().count() <= 1, "{found}");
    }
    let text = REST.replace("sources = [\"a\"]", "sources = [\"a\", \"b\"]");
    let text = format!("{text}push = \"https://example.com/\"\nfetch = {{ {URL} }}\n");
    let ready = Config::parse_ready("oncebox.toml", &text, Environment::default()).unwrap().1;
    assert!(told(&ready.warnings).contains("source `b` names no object"), "{:?}", ready.warnings);
}

#[test]
fn no_error_tells_a_credential() {
    for keys in [
        "fetch = { bearer = \"canary-key\" }",
        "fetch = { url = 1, bearer = \"canary-key\", headers = { X-A = \"canary\" } }",
        "fetch = { url = \"x\", headers = { X-A = \"canary\", Host = \"canary\" }, bearer = 7 }",
    ] {
        let text = format!("{REST}push = \"https://example.com/\"\n{keys}\n");
        let error = Config::parse("oncebox.toml", &text, Environment::default()).unwrap_err();
        for shown in [error.render(true), error.render(false), format!("{error:?}")] {
            assert!(!shown.contains("canary"), "{shown}");
        }
    }
}

#[test]
fn what_is_printed_can_be_read() {
    let keys = "fetch = { url = \"https://api.example.com/{object}\", bearer = \"12345678\", \
                headers = { X-A = \"env:A\" } }";
    let text = format!("{REST}push = \"https://example.com/\"\n{keys}\n");
    let config = Config::parse("a.toml", &text, Environment::default()).unwrap();
    let printed = config.print();
    assert!(
        printed.contains("bearer = \"***\"") && printed.contains("x-a = \"env:A\""),
        "{printed}"
    );
    let read = Config::parse("b.toml", &printed, Environment::default()).unwrap();
    assert_eq!(read.print(), printed);
}

/// The table of the page has every key with its default.
#[test]
fn the_page_has_every_key_with_its_default() {
    let page = include_str!("../../../../../docs/fetch.md");
    let table = page.split("|---|---|---|\n").nth(1).unwrap();
    let rows = table.lines().take_while(|line| line.starts_with("| `"));
    let written: Vec<(String, String)> = rows
        .map(|row| {
            let cells: Vec<_> = row.split(" | ").collect();
            (cells[0].trim_matches(['|', ' ', '`']).to_owned(), cells[1].to_owned())
        })
        .collect();
    let text = format!("{REST}push = \"https://example.com/\"\nfetch = {{ {URL} }}\n");
    let config = Config::parse("a.toml", &text, Environment::default()).unwrap();
    let fetch = toml::Value::try_from(config.routes["r"].fetch.as_ref().unwrap()).unwrap();
    for (key, default) in &written {
        match (default.as_str(), fetch.get(key)) {
            ("required" | "none", _) => {}
            (default, Some(value)) => assert_eq!(default, format!("`{value}`"), "{key}"),
            (_, None) => panic!("{key} is no key"),
        }
    }
    let schema = Config::schema();
    let keys = schema["$defs"]["FetchConfig"]["properties"].as_object().unwrap();
    let mut keys: Vec<_> = keys.keys().cloned().collect();
    let mut names: Vec<_> = written.into_iter().map(|(key, _)| key).collect();
    keys.sort();
    names.sort();
    assert_eq!(names, keys);
}
