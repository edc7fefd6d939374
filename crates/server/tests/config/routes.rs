//! Routes: their retries, leases and guards.

use std::time::Duration;

use crate::{errors, parse};

/// A budget in time decides how many attempts there are, unless those are given as well.
#[test]
fn retries_may_have_a_budget_in_time() {
    let route = |retry: &str| {
        let text = format!(
            "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"12345678\"]\n[routes.r]\n\
             sources = [\"a\"]\npush = \"https://example.com/\"\n{retry}\n"
        );
        parse(&text)
    };
    let rules = |retry: &str| route(retry).unwrap().routes["r"].rules();
    let day = Duration::from_secs(86_400);
    let week = rules("retry = { for = \"7d\" }");
    assert_eq!((week.budget, week.schedule().longest), (Some(7 * day), 7 * day));
    assert!(week.max_attempts > 15, "{}", week.max_attempts);
    assert_eq!(rules("retry = { for = \"7d\", max_attempts = 6 }").max_attempts, 6);
    let continues = rules("on_dead = \"continue\"\nhold_for = \"5m\"");
    assert_eq!(continues.hold_for, Duration::from_secs(300));

    let short = route("retry = { for = \"7d\", max_attempts = 6 }").unwrap();
    let warnings = short.ready().unwrap().warnings;
    let told = warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(told.contains("ends its retries after 6 attempts"), "{told}");
    for (wrong, why) in [
        ("retry = { for = \"0s\" }", "`for` must be more than 0"),
        ("retry = { max_attempts = 0 }", "between 1 and 1000"),
        ("hold_for = \"5m\"", "`hold_for` needs `on_dead = \"continue\"`"),
    ] {
        let errors = route(wrong).unwrap_err().join("\n");
        assert!(errors.contains(why), "{errors}");
    }
}

/// What a server that was killed had is pushed again soon after its time-out.
#[test]
fn the_lease_of_a_push_follows_from_its_time_out() {
    let lease = |timeout: &str| {
        let text =
            format!("[destinations.m]\nurl = \"https://example.com/\"\ntimeout = \"{timeout}\"\n");
        parse(&text).unwrap().destinations["m"].sending.lease().as_secs()
    };
    assert_eq!((lease("2s"), lease("20s"), lease("30s"), lease("10m")), (7, 25, 30, 30));
}

/// Each of these is one mistake, and is refused with a message about it.
/// The store knows which routes workers elsewhere may take from.
#[test]
fn only_routes_with_pull_are_pulled_from() {
    let source = "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"12345678\"]\n";
    for (consumer, pulled) in [("pull = true", true), ("push = \"https://example.com/\"", false)] {
        let text = format!("{source}[routes.r]\nsources = [\"a\"]\n{consumer}\n");
        assert_eq!(parse(&text).unwrap().routes["r"].rules().pulled, pulled, "{consumer}");
    }
}

/// A guard by object needs a provider that names one.
#[test]
fn guards_that_guard_nothing_are_warned_about() {
    let told = |source: &str, route: &str| {
        let text = format!(
            "[sources.a]\nsecrets = [\"12345678\"]\n{source}\n\
             [routes.r]\nsources = [\"a\"]\npull = true\n{route}\n"
        );
        let warnings = parse(&text).unwrap().ready().unwrap().warnings;
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let all = "order = \"object\"\nstale = \"skip\"\nsame_operation = \"object\"";
    assert_eq!(
        told("provider = \"hmac\"", all),
        "route `r`: source `a` names no object, so `order` and `stale` and `same_operation` cannot \
         guard its events"
    );
    let object = "provider = \"hmac\"\nobject_id = \"/object\"";
    assert_eq!(
        told(object, all),
        "route `r`: source `a` names no version, so `stale` cannot guard its events"
    );
    assert_eq!(told(object, "order = \"object\""), "");
    assert_eq!(told("provider = \"stripe\"", all), "");
    let fields = "same_operation = { fields = [\"/customer\"] }";
    assert_eq!(told("provider = \"hmac\"", fields), "");
}

/// A provider that is answered after processing waits behind what is dead.
#[test]
fn order_behind_a_late_answer_is_warned_of() {
    let told = |route: &str| {
        let text = format!(
            "[sources.stripe]\nprovider = \"stripe\"\nsecrets = [\"whsec_0123456789\"]\n\
             ack = \"processed\"\n[routes.billing]\nsources = [\"stripe\"]\n\
             push = \"https://app.example.com/\"\nsecret = \"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\"\n{route}"
        );
        let warnings = parse(&text).unwrap().ready().unwrap().warnings;
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let warned = told("order = \"object\"\n");
    assert!(warned.contains("behind a dead delivery"), "{warned}");
    assert!(!told("").contains("behind a dead delivery"));
    assert!(!told("order = \"object\"\non_dead = \"continue\"\n").contains("behind a dead"));
}

#[test]
fn a_service_is_about_workers() {
    let route = |more: &str| {
        format!(
            "[sources.stripe]\nprovider = \"stripe\"\nsecrets = [\"whsec_0123456789\"]\n\
             [routes.billing]\nsources = [\"stripe\"]\n{more}"
        )
    };
    let config = parse(&route("pull = true\nservice = \"shop\"\n")).unwrap();
    assert_eq!(config.routes["billing"].service.as_deref(), Some("shop"));
    let pushed = errors(&route("push = \"https://a.example/\"\nservice = \"shop\"\n"));
    assert!(pushed.contains("`service` is about workers that pull"), "{pushed}");
    let named = errors(&route("pull = true\nservice = \"A/b\"\n"));
    assert!(named.contains("cannot be the name of a service"), "{named}");
}
