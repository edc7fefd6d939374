//! `[destinations.NAME]`: what it may say, and how it says what is wrong.

use oncebox::route::OnDead;
use oncebox_server::config::{Config, Environment, Problem};

fn parse(text: &str) -> Result<Config, String> {
    Config::parse("oncebox.toml", text, Environment::default()).map_err(|error| {
        let told = |problem: &Problem| {
            let place = problem.line_and_column().map(|(line, column)| format!("{line}:{column} "));
            let (place, message) = (place.unwrap_or_default(), problem.message());
            format!("{place}{message} | {}", problem.hint()).trim_end().to_owned()
        };
        error.problems().iter().map(told).collect::<Vec<_>>().join("\n")
    })
}

const MAILER: &str = "[destinations.mailer]\nurl = \"https://mailer.example.com/\"\n";

#[test]
fn a_destination_has_the_defaults_of_a_route() {
    let config = parse(&format!(
        "{MAILER}[sources.a]\nprovider = \"stripe\"\nsecrets = [\"12345678\"]\n\
         [routes.r]\nsources = [\"a\"]\npush = \"https://example.com/\"\n"
    ))
    .unwrap();
    let (mailer, route) = (&config.destinations["mailer"], &config.routes["r"]);
    assert_eq!(format!("{:?}", mailer.sending), format!("{:?}", route.sending));
    let (sent, delivered) = (mailer.rules(), route.rules());
    assert!(sent.ordered && !sent.skip_stale && sent.on_dead == OnDead::Hold);
    assert!(!sent.pulled);
    assert_eq!(oncebox::route::RouteRules { ordered: false, ..sent }, delivered);
    let keeps = config.keeps();
    assert_eq!(keeps["outbox/mailer"], keeps["a"]);
}

#[test]
fn a_destination_can_be_printed_and_read() {
    let all = "secret = \"whsec_c2VjcmV0LW9mLWRlc3RpbmF0aW9u\"\nallow_private = true\n\
               on_dead = \"continue\"\nretry = { max_attempts = 3, base = \"2s\", cap = \"1m\" }\n\
               max_snoozes = 7\npermanent = [410]\ntimeout = \"9s\"\nconnect_timeout = \"2s\"\n\
               concurrency = 4\nrate = 50\nkeep = \"7d\"\nrenamed_from = \"post\"\n";
    let config = parse(&format!("{MAILER}{all}")).unwrap();
    let printed = config.print();
    let again = parse(&printed.replace("\"***\"", "\"whsec_c2VjcmV0LW9mLWRlc3RpbmF0aW9u\""));
    assert_eq!(again.unwrap().print(), printed);
    assert!(!printed.contains("c2VjcmV0"), "{printed}");
    let keep = config.keeps()["outbox/mailer"];
    assert_eq!(keep.payloads, jiff::SignedDuration::from_hours(7 * 24));
    assert!(config.names_route("outbox/mailer") && config.names_route("outbox/post"));
    assert!(!config.names_route("mailer") && !config.names_route("outbox/other"));
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let told = parse(
        "[destinations.Mailer]\n\
         url = \"mailto:a@example.com\"\n\
         retires = 3\n\
         [destinations.crm]\n\
         push = \"https://crm.example.com/\"\n\
         [destinations.sms]\n\
         url = \"https://user:canary@sms.example.com/\"\n\
         rate = 0\n\
         keep = \"a week\"\n\
         renamed_from = \"erp\"\n\
         on_dead = \"skip\"\n\
         timeout = \"2h\"\n\
         [destinations.erp]\n\
         url = \"https://erp.example.com/\"\n",
    )
    .unwrap_err();
    insta::assert_snapshot!(told, @r#"
    1:1 `Mailer` cannot be the name of a destination | names are a-z, 0-9 and hyphens, begin with a letter or digit, up to 63 characters
    2:7 `url` is no http or https URL | write the whole URL, such as https://mailer.example.com/messages
    3:1 unknown key `destinations.Mailer.retires` | known here: url, keep, secret, allow_private, on_dead, hold_for, retry, max_snoozes, permanent, timeout, connect_timeout, concurrency, rate, renamed_from
    4:1 destination `crm` has no URL | write url = "https://…", where its messages are to be pushed
    5:1 unknown key `destinations.crm.push` | known here: url, keep, secret, allow_private, on_dead, hold_for, retry, max_snoozes, permanent, timeout, connect_timeout, concurrency, rate, renamed_from
    7:7 `url` has a user or password in it | the consumer recognises Oncebox by the signature; see `secret`
    8:8 `rate` is 0 | nothing would be pushed; at least 1, or `oncebox routes pause`
    9:8 `destinations.sms.keep` must be a number and ms, s, m, h or d, such as "30d" |
    10:16 `sms` was renamed from `erp`, which still exists | remove one of the two
    11:11 `destinations.sms.on_dead` must be "hold" or "continue" |
    12:11 `timeout` must be more than 0 and at most 1h | 30s and 5s are usual
    "#);
}

#[test]
fn effects_are_kept_as_long_as_identities_and_messages_at_least() {
    let of = |text: &str| parse(text).map(|config| config.retention.effects.to_string());
    assert_eq!(of("").unwrap(), "400d");
    assert_eq!(of("[retention]\neffects = \"35d\"\n").unwrap(), "35d");
    // Where nobody says how long, it is as long as it takes.
    assert_eq!(of("[retention]\nidentities = \"900d\"\n").unwrap(), "900d");
    let source = "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"12345678\"]\n\
                  retention = { identities = \"500d\" }\n";
    assert_eq!(of(source).unwrap(), "500d");
    let told = of("[retention]\neffects = \"10d\"\n").unwrap_err();
    assert!(told.starts_with("2:11 effects would be kept for 10d, identities for 35d"), "{told}");
    let told = of(&format!("{source}[retention]\neffects = \"400d\"\n")).unwrap_err();
    assert!(told.starts_with("4:28 effects would be kept for 400d, identities for 500d"), "{told}");
    // A key that is forgotten while its message is kept would write it again.
    let mailer = format!("{MAILER}keep = \"600d\"\n");
    assert_eq!(of(&mailer).unwrap(), "600d");
    let told = of(&format!("{mailer}[retention]\neffects = \"400d\"\n")).unwrap_err();
    assert!(told.starts_with("3:8 effects would be kept for 400d, messages for 600d"), "{told}");
}

#[test]
fn secrets_and_addresses_are_checked_as_those_of_routes() {
    let ready = |more: &str| {
        let config = parse(&format!("{MAILER}{more}")).unwrap();
        config.ready().map_err(|error| error.to_string())
    };
    for secret in ["whsec_not*base64", "1234567", "env:UNSET"] {
        let told = ready(&format!("secret = \"{secret}\"\n")).unwrap_err();
        assert!(told.contains("line 3") && !told.contains("not*base64"), "{told}");
    }
    let told = |more: &str| {
        let warnings = ready(more).unwrap().warnings;
        let ours = warnings.iter().map(ToString::to_string).filter(|one| one.contains("mailer"));
        ours.collect::<Vec<_>>()
    };
    assert_eq!(told(""), ["destination `mailer` pushes without a signature"]);
    let secret = "secret = \"whsec_c2VjcmV0LW9mLWRlc3RpbmF0aW9u\"\n";
    assert!(told(secret).is_empty());
    let mut ready = parse(&format!("{MAILER}{secret}")).unwrap().ready().unwrap();
    assert!(ready.signers.remove("outbox/mailer").is_some());
    let local = parse("[destinations.mailer]\nurl = \"http://localhost:1/\"\n").unwrap();
    let warnings = local.ready().unwrap().warnings;
    let told: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert!(told.contains(&"destination `mailer` pushes to an address that is not public".into()));
}

#[test]
fn the_environment_names_destinations_with_underscores() {
    let environment = Environment::from([
        ("ONCEBOX__DESTINATIONS__MAIL_OUT__URL", "https://mail.example.com/"),
        ("ONCEBOX__DESTINATIONS__MAIL_OUT__RATE", "5"),
    ]);
    let config = Config::parse("oncebox.toml", "", environment).unwrap();
    assert_eq!(config.destinations["mail-out"].sending.rate, Some(5));
}
