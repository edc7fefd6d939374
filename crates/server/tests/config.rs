//! The configuration: what it may say, and how it says what is wrong.

use std::time::Duration;

use oncebox::receipt::{OddAct, OddRules};
use oncebox_server::config::STARTER;
use oncebox_server::config::{Config, Environment, Period, Problem, SecretRef};

fn parse(text: &str) -> Result<Config, Vec<String>> {
    parse_with(text, Environment::default())
}

fn parse_with(text: &str, environment: Environment) -> Result<Config, Vec<String>> {
    Config::parse("oncebox.toml", text, environment).map_err(|error| {
        let told = |problem: &oncebox_server::config::Problem| {
            let place = match problem.line_and_column() {
                Some((line, column)) => format!("{line}:{column} "),
                None => String::new(),
            };
            let hint = match problem.hint() {
                "" => String::new(),
                hint => format!(" | {hint}"),
            };
            format!("{place}{}{hint}", problem.message())
        };
        error.problems().iter().map(told).collect()
    })
}

fn errors(text: &str) -> String {
    parse(text).expect_err("the configuration is wrong").join("\n")
}

const EXAMPLE: &str = include_str!("../../../oncebox.example.toml");

/// What is commented out as a default must be the default.
#[test]
fn the_example_shows_every_default() {
    let defaults: String = EXAMPLE
        .lines()
        .map(|line| {
            let key = line.strip_prefix('#').filter(|line| line.starts_with(char::is_alphabetic));
            let key =
                key.filter(|line| !line.starts_with("example:") && !line.starts_with("none:"));
            format!("{}\n", key.unwrap_or(line))
        })
        .collect();
    let read = parse(&defaults).expect("the example can be read");
    assert_eq!(read.print(), Config::default().print());
    // And none is left out: the printed defaults name as many keys.
    let keys = |text: &str| {
        let key = |line: &str| line.split(" = ").next().map(str::to_owned);
        let mut keys: Vec<_> =
            text.lines().filter(|line| line.contains(" = ")).filter_map(key).collect();
        keys.sort();
        keys
    };
    let written: String = defaults
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(keys(&written), keys(&Config::default().print()));
}

/// The examples in the example are right as well, those of keys without a default included.
#[test]
fn the_example_can_be_used() {
    let used: String = EXAMPLE
        .lines()
        .map(|line| {
            let text = line.strip_prefix("#example: ").or(line.strip_prefix("#none: "));
            let text = text
                .filter(|text| !text.starts_with("tls") && !text.starts_with("signature_label"));
            let text = text.filter(|text| !text.starts_with("timestamp_label"));
            let text = text.filter(|text| !text.starts_with("sign_url"));
            let text = text.filter(|text| !text.starts_with("service"));
            format!("{}\n", text.unwrap_or(line))
        })
        .collect();
    let config = parse(&used).unwrap_or_else(|errors| panic!("{}", errors.join("\n")));
    assert_eq!(config.sources.len(), 5);
    assert!(config.sources["alerts"].confirm_subscriptions);
    assert_eq!(config.routes["billing"].sending.retry.max_attempts, 15);
    assert_eq!(config.sources["stripe-live"].burst, Some(1000));
    let rules = config.routes["billing"].rules();
    assert!(rules.ordered && rules.skip_stale && rules.is_guarded());
    assert_eq!(rules.same_operation, Some(std::time::Duration::from_secs(300)));
    let printed = parse(&config.print()).expect("what is printed can be read");
    assert_eq!(printed.print(), config.print());
    parse(STARTER).expect("the starter can be read");
}

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

#[test]
fn the_schema_names_every_key_of_the_example() {
    let schema = Config::schema().to_string();
    for line in EXAMPLE.lines() {
        let Some(line) = line.strip_prefix('#').filter(|line| line.contains(" = ")) else {
            continue;
        };
        let line = line.trim_start_matches("example: ").trim_start_matches("none: ");
        let key = line.split(" = ").next().unwrap();
        if key.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_') {
            assert!(schema.contains(&format!("\"{key}\"")), "the schema lacks {key}");
        }
    }
}

#[test]
fn every_error_is_told_at_once_with_its_place() {
    let told = errors(
        "[server]\n\
         lisen = \"0.0.0.0:1\"\n\
         max_body = \"25 megs\"\n\
         \n\
         [sources.Stripe]\n\
         provider = \"strip\"\n\
         secrets = []\n\
         \n\
         [routes.billing]\n\
         sources = [\"stripe\"]\n\
         push = \"ftp://example.com\"\n",
    );
    insta::assert_snapshot!(told, @r#"
    2:1 unknown key `server.lisen` | did you mean `listen`?
    3:12 `server.max_body` must be a number and B, KiB, MiB or GiB, such as "25MiB"
    5:1 `Stripe` cannot be the name of a source | names are a-z, 0-9 and hyphens, begin with a letter or digit, up to 63 characters
    6:12 there is no provider `strip` | did you mean `stripe`?
    7:11 source `Stripe` has no secret | write secrets = ["env:NAME"]; without one anybody could be the provider
    10:12 route `billing` takes from `stripe`, which is no source | add [sources.stripe], or correct the name
    11:8 `push` is no http or https URL | write the whole URL, such as https://app.example.com/webhooks
    "#);
}

#[test]
fn an_error_shows_the_line_and_what_to_do() {
    let error = Config::parse("oncebox.toml", "[sever]\nlisten = 1\n", Environment::default());
    insta::assert_snapshot!(error.unwrap_err().render(false), @"
     × unknown key `sever`
      ╭─[oncebox.toml:1:2]
    1 │ [sever]
      ·  ──┬──
      ·    ╰── here
    2 │ listen = 1
      ╰────
     help: did you mean `server`?
    ");
}

#[test]
fn syntax_errors_show_no_quoted_text() {
    let text = "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"canary-secret-1\" \"x\"]\n";
    let error = Config::parse("oncebox.toml", text, Environment::default()).unwrap_err();
    let shown = error.render(false);
    assert!(shown.contains("oncebox.toml:3"), "{shown}");
    assert!(!shown.contains("canary"), "{shown}");
}

#[test]
fn no_error_tells_a_secret() {
    let texts = [
        "[sources.a]\nprovider = \"stripe\"\nsecret = \"canary-1\"\n",
        "[sources.a]\nprovider = \"stripe\"\nsecrets = \"canary-1\"\n",
        "[sources.a]\nprovider = \"svix\"\nsecrets = [\"canary-!\"]\n",
        "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"canary\"]\n",
        "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"canary-1\"]\napi_key = \"canary\"\n",
        "[store]\nurl = \"mysql://me:canary@host/db\"\n",
        "[store]\nurl = \"x\" # nothing\npassword = \"canary\"\n",
    ];
    for text in texts {
        let error = Config::parse("oncebox.toml", text, Environment::default())
            .and_then(|config| config.ready().map(|_| ()))
            .expect_err(text);
        for shown in
            [error.render(true), error.render(false), error.to_string(), format!("{error:?}")]
        {
            assert!(!shown.contains("canary"), "{text}\n{shown}");
        }
    }
}

#[test]
fn the_environment_overrides_the_file() {
    let environment = Environment::from([
        ("ONCEBOX__STORE__URL", "postgres://me:canary@db/x"),
        ("ONCEBOX__SERVER__LISTEN", "127.0.0.1:9"),
        ("ONCEBOX__SERVER__MAX_CONNECTIONS", "7"),
        ("ONCEBOX__SERVER__TRUSTED_PROXIES", "10.0.0.0/8"),
        ("ONCEBOX__SOURCES__STRIPE_LIVE__SECRETS", "[\"env:A\", \"file:b\"]"),
        ("ONCEBOX__SOURCES__STRIPE-TEST__PROVIDER", "stripe"),
        ("ONCEBOX__SOURCES__STRIPE-TEST__SECRETS", "12345678"),
        ("ONCEBOX_CONFIG", "elsewhere.toml"),
    ]);
    let text = "[sources.stripe-live]\nprovider = \"stripe\"\nsecrets = [\"literal-secret\"]\n";
    let config = parse_with(text, environment).unwrap();
    assert_eq!(config.store.url.as_str(), "postgres://me:canary@db/x");
    assert_eq!(config.server.listen.port(), 9);
    assert_eq!(config.server.max_connections, 7);
    assert_eq!(config.server.trusted_proxies.len(), 1);
    let secrets = |name: &str| {
        config.sources[name].secrets.iter().map(SecretRef::to_string).collect::<Vec<_>>()
    };
    assert_eq!(secrets("stripe-live"), ["env:A", "file:b"]);
    assert_eq!(secrets("stripe-test"), ["***"]);
    let printed = config.print();
    assert!(printed.contains("postgres://me:***@db/x"), "{printed}");
    assert!(!printed.contains("canary") && !printed.contains("12345678"), "{printed}");
}

#[test]
fn a_wrong_variable_is_named() {
    let environment = Environment::from([
        ("ONCEBOX__SERVER__LISEN", "127.0.0.1:9"),
        ("ONCEBOX__SERVER__MAX_BODY", "huge"),
    ]);
    let told = parse_with("", environment).unwrap_err().join("\n");
    insta::assert_snapshot!(told, @r#"
    `server.max_body` must be a number and B, KiB, MiB or GiB, such as "25MiB" (from the environment variable ONCEBOX__SERVER__MAX_BODY)
    unknown key `server.lisen` (from the environment variable ONCEBOX__SERVER__LISEN) | did you mean `listen`?
    "#);
    let told = parse_with("", Environment::from([("ONCEBOX__STORE", "x")])).unwrap_err();
    assert!(told[0].contains("ONCEBOX__STORE names no key"), "{told:?}");
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

#[test]
fn mistakes_are_refused() {
    let source = "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"12345678\"]\n";
    let route = "[routes.r]\nsources = [\"a\"]\n";
    let push = format!("{route}push = \"http://h/\"\n");
    let cases = [
        ("[retention]\npayloads = \"40d\"\n".to_owned(), "identities would be kept for 35d"),
        (format!("{source}retention = {{ identities = \"1d\" }}\n"), "identities would be kept"),
        (format!("{source}burst = 5\n"), "`burst` without `rate`"),
        (format!("{source}rate = 0\n"), "`rate` is 0"),
        (format!("{source}rate = -1\n"), "must be a number of events"),
        (format!("{source}signature_header = \"X\"\n"), "unknown key"),
        (format!("{source}public_url = \"/in/a\"\n"), "`public_url` is no"),
        (format!("{source}renamed_from = \"a\"\n"), "cannot be renamed"),
        (
            source.replace("sources.a", "sources.unknown"),
            "`unknown` cannot be the name of a source",
        ),
        (
            format!("{source}{route}pull = true\n").replace("routes.r", "routes.unknown"),
            "`unknown` cannot be the name of a route",
        ),
        (format!("{source}{route}"), "has no consumer"),
        (format!("{source}{route}push = \"http://h/\"\npull = true\n"), "both `push` and `pull`"),
        (format!("{source}{route}push = \"http://u:p@h/\"\n"), "user or password"),
        (format!("{source}{route}pull = true\nsecret = \"12345678\"\n"), "signs what is pushed"),
        (format!("{source}{route}pull = true\norder = \"objects\"\n"), "\"none\" or \"object\""),
        (format!("{source}{route}pull = true\nretry = {{ base = \"2d\" }}\n"), "at most `cap`"),
        ("[routes.r]\nsources = [\"b\"]\npull = true\n".to_owned(), "which is no source"),
        (format!("{source}{route}pull = true\ntimeout = \"1s\"\n"), "is about pushing"),
        (format!("{source}{route}pull = true\non_dead = \"skip\"\n"), "\"hold\" or \"continue\""),
        (
            format!("{source}{route}pull = true\nsame_operation = \"id\"\n"),
            "must be \"object\", or",
        ),
        (format!("{source}{push}same_operation = {{ fields = [] }}\n"), "1 to 16 fields"),
        (format!("{source}{push}same_operation = {{ fields = [\"id\"] }}\n"), "JSON pointer"),
        (format!("{source}{push}same_operation = {{ fields = [\"/a\"], windw = 1 }}\n"), "must be"),
        (format!("{source}{push}permanent = [200]\n"), "between 300 and 599"),
        (format!("{source}{push}timeout = \"0s\"\n"), "`timeout` must be more than 0"),
        (format!("{source}{push}connect_timeout = \"2h\"\n"), "at most 1h"),
        (format!("{source}{push}concurrency = 0\n"), "between 1 and 1000"),
        (format!("{source}{push}rate = 0\n"), "`rate` is 0"),
        (format!("{source}ack = \"later\"\n"), "\"recorded\" or \"processed\""),
        (format!("{source}ack_timeout = \"1s\"\n"), "without `ack = \"processed\"`"),
        (format!("{source}ack = \"processed\"\n"), "its route does not exist"),
        (format!("{source}ack = \"processed\"\n{route}pull = true\n"), "is pulled from"),
        (
            format!("{source}ack = \"processed\"\n{push}{}", push.replace("routes.r", "routes.s")),
            "is not the only one",
        ),
        ("[server]\nlisten = \"localhost\"\n".to_owned(), "must be an address and a port"),
        ("[server]\nlisten = \"0.0.0.0:1\"\nadmin_listen = \"0.0.0.0:1\"\n".to_owned(), "same as"),
        ("[server]\nmemory_budget = \"1MiB\"\n".to_owned(), "less than `max_body`"),
        ("[server]\nmemory_per_address = \"1MiB\"\n".to_owned(), "between `max_body` and"),
        ("[server]\nadmin_hosts = [\"http://a\"]\n".to_owned(), "is no name of a host"),
        ("[server]\ntls = { cert = \"a.pem\" }\n".to_owned(), "`tls` has no `key`"),
        ("[store]\nurl = \"sqlite://:memory:\"\n".to_owned(), "names no store"),
        ("[store]\nurl = 1\n".to_owned(), "must be sqlite://"),
        ("[sources]\na = 1\n".to_owned(), "must be a table"),
        ("[sources.a]\nsecrets = [\"12345678\"]\n".to_owned(), "has no provider"),
        ("[sources.a]\nprovider = \"stripe\"\n".to_owned(), "has no secret"),
        (source.replace("stripe", "hmac") + "signature_haeder = \"X\"\n", "unknown key"),
        (source.replace("stripe", "hmac") + "algorithm = \"md5\"\n", "algorithm"),
        (source.replace("stripe", "hmac") + "tolerance = \"5m\"\n", "number of seconds"),
    ];
    for (text, expected) in cases {
        let told = errors(&text);
        assert!(told.contains(expected), "{text}\nshould tell: {expected}\ntells: {told}");
    }
}

/// What only fetching the secrets shows.
#[test]
fn secrets_that_cannot_be_used_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        format!("file:{}", path.display())
    };
    let ready = |provider: &str, secret: &str| {
        let text = format!("[sources.a]\nprovider = \"{provider}\"\nsecrets = [\"{secret}\"]\n");
        let environment =
            Environment::from([("EMPTY", ""), ("SHORT", "1234567"), ("FINE", "12345678")]);
        let config = Config::parse("oncebox.toml", &text, environment).unwrap();
        config.ready().map(|_| ()).map_err(|error| error.to_string())
    };
    let refused = [
        ("stripe", "env:UNSET".to_owned(), "UNSET is not set"),
        ("stripe", "env:EMPTY".to_owned(), "env:EMPTY is empty"),
        ("stripe", "env:SHORT".to_owned(), "fewer than 8"),
        ("stripe", String::new(), "is empty"),
        ("stripe", "1234567".to_owned(), "fewer than 8"),
        ("stripe", file("empty", "\n"), "is empty"),
        ("stripe", format!("file:{}", dir.path().join("none").display()), "cannot be read"),
        ("svix", "whsec_not*base64".to_owned(), "not base64"),
        ("stripe", "        ".to_owned(), "is empty"),
    ];
    for (provider, secret, expected) in refused {
        let told = ready(provider, &secret).expect_err(&secret);
        assert!(told.contains(expected) && told.contains("line 3"), "{secret}: {told}");
    }
    ready("stripe", "env:FINE").unwrap();
    ready("stripe", &file("fine", "12345678\n")).unwrap();
}

#[test]
fn a_printed_configuration_can_be_read() {
    let text = "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"12345678\"]\n\
                [routes.r]\nsources = [\"a\"]\npull = true\nsame_operation = \"object\"\n\
                [routes.s]\nsources = [\"a\"]\npush = \"https://example.com\"\n";
    let config = parse(text).unwrap();
    assert_eq!(parse(&config.print()).unwrap().print(), config.print());
}

/// What signs pushes must be what libraries for Standard Webhooks can use.
#[test]
fn a_secret_that_cannot_sign_is_refused() {
    let ready = |secret: &str| {
        let text = format!(
            "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"12345678\"]\n[routes.r]\n\
             sources = [\"a\"]\npush = \"https://example.com\"\nsecret = \"{secret}\"\n"
        );
        parse(&text).unwrap().ready().map(|_| ()).map_err(|error| error.to_string())
    };
    for secret in ["whsec_not*base64", "1234567", "env:UNSET", "whpk_MCowBQYDK2VwAyEAAAAA"] {
        let told = ready(secret).expect_err(secret);
        assert!(told.contains("line 7"), "{told}");
        assert!(!told.contains("not*base64"), "{told}");
    }
    ready("whsec_c2VjcmV0LW9mLXJvdXRl").unwrap();
    // A text of one's own is a key, too, if an unusual one: only a warning.
    ready("our own words, not base64").unwrap();
}

/// The Host header is the sender's word, so it cannot stand in for the URL that was signed.
#[test]
fn a_provider_that_signs_the_url_needs_to_be_told_it() {
    let text = "[sources.a]\nprovider = \"twilio\"\nsecrets = [\"12345678\"]\n";
    let error = parse(text).unwrap().ready().unwrap_err();
    let [problem] = error.problems() else { panic!("{error}") };
    assert_eq!(problem.line_and_column(), Some((2, 12)), "{error}");
    assert_eq!(problem.message(), "source `a`: the provider signs the URL it calls");
    assert!(problem.hint().contains("set `public_url`"), "{}", problem.hint());
    let told = format!("{text}public_url = \"https://hooks.example.com/in/a\"\n");
    parse(&told).unwrap().ready().unwrap();
}

/// A mistake in one place does not hide a secret that is missing in another.
#[test]
fn mistakes_and_secrets_are_told_together() {
    let text = "[server]\nmax_bdy = \"1MiB\"\ntls = { cert = \"none.pem\", key = \"none.pem\" }\n\
                [sources.a]\nprovider = \"strip\"\nsecrets = [\"12345678\"]\n\
                [sources.b]\nprovider = \"stripe\"\nsecrets = [\"env:UNSET\"]\n";
    let error = Config::parse_ready("oncebox.toml", text, Environment::default()).unwrap_err();
    let lines = error.problems().iter().map(|problem| problem.line_and_column().unwrap().0);
    assert_eq!(lines.collect::<Vec<_>>(), [2, 3, 5, 9], "{error}");
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

#[test]
fn an_empty_event_type_is_refused() {
    let text = "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"12345678\"]\nevents = [\"\"]\n\
                [routes.r]\nsources = [\"a\"]\npull = true\nevents = [\"x\", \"\"]\n";
    let error = Config::parse("oncebox.toml", text, Environment::default()).unwrap_err();
    let places = error.problems().iter().filter_map(Problem::line_and_column);
    let places: Vec<_> = places.collect();
    assert_eq!(places, [(4, 11), (8, 16)], "{error}");
}

#[test]
fn suspicious_configurations_are_warned_about() {
    let text = "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"12345678\"]\n\
                [sources.b]\nprovider = \"stripe\"\nsecrets = [\"12345678\"]\n\
                [routes.r]\nsources = [\"a\"]\npush = \"https://example.com\"\n\
                [routes.s]\nsources = [\"a\"]\npush = \"http://localhost:3000/\"\n\
                secret = \"whsec_c2VjcmV0LW9mLXJvdXRl\"\n";
    let warnings = parse(text).unwrap().ready().unwrap().warnings;
    let told: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    sources `a` and `b` share a secret
    route `r` pushes without a signature
    route `s` pushes to an address that is not public
    ");
    assert!(warnings.iter().all(oncebox_server::config::Problem::is_warning));
}

/// A source that takes anything cannot be hidden.
#[test]
fn what_takes_anything_cannot_be_hidden() {
    let told = |hidden: &str| {
        let text = format!(
            "[server]\n{hidden}\n[sources.bin]\nprovider = \"capture\"\n\
                            allow_unverified = true\n"
        );
        let warnings = parse(&text).unwrap().ready().unwrap().warnings;
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told(""), Vec::<String>::new());
    let warning = "source `bin` takes whatever is sent, so anybody can tell that it exists";
    assert_eq!(told("hide_unknown_sources = true"), [warning]);
}

/// What a provider needs beside secrets is a key of its source, and told where it is missing.
#[test]
fn settings_are_those_that_the_provider_names() {
    let told = errors(
        "[sources.topic]\n\
         provider = \"aws-sns\"\n\
         topicarn = \"arn:aws:sns:us-east-1:1:orders\"\n\
         \n\
         [sources.mine]\n\
         provider = \"stripe\"\n\
         secrets = [\"12345678\"]\n\
         topic_arn = \"1\"\n\
         allow_private = true\n\
         confirm_subscriptions = true\n\
         \n\
         [sources.typo]\n\
         provider = \"aws-snss\"\n\
         secrets = [\"12345678\"]\n\
         topic_arn = \"1\"\n",
    );
    for expected in [
        "1:1 source `topic` has no `topic_arn` | ",
        "3:1 unknown key `sources.topic.topicarn` | did you mean `topic_arn`?",
        "8:1 unknown key `sources.mine.topic_arn` | it belongs to another provider",
        "`allow_private` says where keys may be fetched from, and none are",
        "`confirm_subscriptions` is for Amazon SNS",
        "13:12 there is no provider `aws-snss` | did you mean `aws-sns`?",
    ] {
        assert!(told.contains(expected), "should tell: {expected}\ntells: {told}");
    }
    assert!(!told.contains("sources.typo.topic_arn"), "{told}");
}

#[test]
fn settings_come_from_the_environment_and_files_like_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("id");
    std::fs::write(&file, "arn:aws:sns:us-east-1:1:orders\n").unwrap();
    let ready = |setting: &str| {
        let text = format!("[sources.topic]\nprovider = \"aws-sns\"\ntopic_arn = \"{setting}\"\n");
        let environment =
            Environment::from([("ID", "arn:aws:sns:us-east-1:1:orders"), ("EMPTY", "")]);
        let config = Config::parse("oncebox.toml", &text, environment).unwrap();
        let ready = config.ready().map_err(|error| error.to_string())?;
        let keyring = &ready.keyrings["topic"];
        assert_eq!(keyring.setting("topic_arn"), Some("arn:aws:sns:us-east-1:1:orders"));
        Ok::<_, String>(config.print())
    };
    let printed = ready("env:ID").unwrap();
    assert!(printed.contains("topic_arn = \"env:ID\""), "{printed}");
    assert!(printed.contains("secrets = []"), "{printed}");
    ready(&format!("file:{}", file.display())).unwrap();
    ready("arn:aws:sns:us-east-1:1:orders").unwrap();
    for (wrong, expected) in [
        ("env:UNSET", "UNSET is not set"),
        ("env:EMPTY", "is empty"),
        ("file:/none/here", "cannot be read"),
    ] {
        let told = ready(wrong).unwrap_err();
        assert!(told.contains(expected) && told.contains("line 3"), "{wrong}: {told}");
    }
}

#[test]
fn a_source_needs_a_secret_unless_its_keys_are_public() {
    let config = |text: &str| parse(text).unwrap();
    let fetched =
        "[sources.a]\nprovider = \"fusionauth\"\njwks_url = \"https://id.example.com/jwks\"\n";
    assert!(config(fetched).ready().is_ok());
    let wrong = fetched.replace("https://id.example.com", "http://id.example.com");
    let told = config(&wrong).ready().unwrap_err().to_string();
    assert!(told.contains("jwks_url") && told.contains("line 3"), "{told}");
    let neither = "[sources.a]\nprovider = \"fusionauth\"\n";
    assert!(parse(neither).and_then(|config| config.ready().map_err(|_| Vec::new())).is_err());
    assert!(errors("[sources.a]\nprovider = \"sendgrid\"\n").contains("has no secret"));
}

#[test]
fn the_schema_knows_the_settings_of_every_provider() {
    let schema = Config::schema();
    let properties = schema["$defs"]["SourceConfig"]["properties"].as_object().unwrap();
    for provider in oncebox_verify::catalogue::ALL.iter() {
        for (key, _) in oncebox_server::config::setting_keys(provider) {
            let known = &properties[key];
            assert_eq!(known["type"], "string", "{key} of {}", provider.name);
        }
    }
    for key in ["allow_private", "confirm_subscriptions"] {
        assert_eq!(properties[key]["type"], "boolean");
    }
    let required = schema["$defs"]["SourceConfig"]["required"].to_string();
    assert!(!required.contains("secrets"), "{required}");
}

#[test]
fn mistakes_about_odd_arrivals_are_refused() {
    let source = "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"12345678\"]\n";
    let cases = [
        (format!("{source}twins = \"keep\"\n"), "\"deliver\" or \"hold\""),
        (format!("{source}conflicts = true\n"), "\"deliver\" or \"hold\""),
        (
            source.replace("stripe", "mailgun") + "twins = \"deliver\"\n",
            "needs a signature over the whole body, which `mailgun` does not have",
        ),
        (source.replace("stripe", "token") + "twins = \"deliver\"\n", "over the whole body"),
        (source.replace("stripe", "gitlab") + "twins = \"deliver\"\n", "over the whole body"),
    ];
    for (text, expected) in cases {
        let told = errors(&text);
        assert!(told.contains(expected) && told.starts_with("4:"), "{text}\ntells: {told}");
    }
}

/// The entry says what happens to odd arrivals, unless the source does.
#[test]
fn a_source_overrides_what_its_entry_says_of_odd_arrivals() {
    let rules = |provider: &str, keys: &str| {
        let secrets = "secrets = [\"12345678\"]";
        let text = format!("[sources.a]\nprovider = \"{provider}\"\n{secrets}\n{keys}");
        let config = parse(&text).unwrap();
        let again = parse(&config.print()).unwrap();
        assert_eq!(config.sources["a"].odd_rules(), again.sources["a"].odd_rules(), "{text}");
        config.sources["a"].odd_rules()
    };
    let [hold, deliver] = [OddAct::Hold, OddAct::Deliver];
    let odd = |twins, conflicts, types_share_body| OddRules { twins, conflicts, types_share_body };
    assert_eq!(rules("stripe", ""), OddRules::default());
    assert_eq!(rules("shopify", ""), odd(hold, hold, true));
    assert_eq!(rules("shopify", "twins = \"deliver\"\n"), odd(deliver, hold, true));
    assert_eq!(rules("shopify", "conflicts = \"deliver\"\n"), odd(hold, deliver, true));
    assert_eq!(rules("github", ""), odd(deliver, hold, false));
    assert_eq!(rules("github", "twins = \"hold\"\n"), odd(hold, hold, false));
    assert_eq!(rules("xero", ""), odd(hold, deliver, false));
    assert_eq!(rules("xero", "conflicts = \"hold\"\n"), OddRules::default());
    assert_eq!(rules("hmac", "twins = \"deliver\"\n"), odd(deliver, hold, false));
    assert_eq!(rules("mailgun", "twins = \"hold\"\n"), OddRules::default());
}

/// A late retry of the provider would be taken for a new event.
#[test]
fn a_memory_shorter_than_the_retries_is_warned_about() {
    let warnings = |text: &str| {
        let key = "44782DEF547AAA06C910C43932B1EB0C";
        let source = &format!("[sources.adyen]\nprovider = \"adyen\"\nsecrets = [\"{key}\"]");
        let text = text.replace("SOURCE", source);
        let warnings = parse(&text).unwrap().ready().unwrap().warnings;
        let warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        warnings.into_iter().filter(|told| told.contains("remembers")).collect::<Vec<_>>()
    };
    assert_eq!(warnings("SOURCE\n"), [""; 0]);
    let short = "[retention]\npayloads = \"5d\"\nidentities = \"20d\"\nSOURCE\n";
    let told = warnings(short).join("\n");
    assert!(told.contains("source `adyen` remembers identities for 20d"), "{told}");
    assert!(told.contains("again for 30d"), "{told}");
    let own = "[sources.adyen.retention]\npayloads = \"5d\"\nidentities = \"29d\"\n";
    assert_eq!(warnings(&format!("SOURCE\n{own}")).len(), 1);
    assert_eq!(warnings(&format!("SOURCE\n{}", own.replace("29d", "30d"))), [""; 0]);
}

/// What every provider needs, where nobody says how long identities are kept.
#[test]
fn the_default_memory_outlasts_every_provider() {
    let default = Config::default().retention.identities;
    for provider in oncebox_verify::catalogue::ALL.iter() {
        let horizon = Period::hours(provider.retry_hours.into());
        assert!(horizon <= default, "{}: {horizon}", provider.name);
    }
}

/// Where every request is an event of its own, a captured one is accepted without end.
#[test]
fn sources_without_identities_have_a_rate() {
    let limit = |provider: &str, more: &str| {
        let text = format!(
            "[sources.a]\nprovider = \"{provider}\"\nsecrets = [\"some-secret-or-other\"]\n{more}"
        );
        parse(&text).unwrap().sources["a"].rate_limit()
    };
    assert_eq!(limit("stripe", ""), None);
    assert_eq!(limit("bunny-stream", ""), Some((50, Some(1000))));
    assert_eq!(limit("bunny-stream", "rate = 5\n"), Some((5, None)));
    for provider in oncebox_verify::catalogue::ALL.iter().filter(|entry| entry.takes_each()) {
        assert!(provider.name != "stripe", "{}", provider.name);
    }
}

#[test]
fn a_scheme_must_be_one_of_the_provider() {
    let told = |provider: &str, scheme: &str| {
        let text = format!(
            "[sources.a]\nprovider = \"{provider}\"\nsecrets = [\"some-secret-or-other\"]\n\
             public_url = \"https://example.com/in/a\"\nscheme = \"{scheme}\"\n"
        );
        match parse(&text) {
            Err(problems) => problems.join("\n"),
            Ok(config) => {
                config.ready().err().map_or_else(String::new, |error| error.render(false))
            }
        }
    };
    assert_eq!(told("hubspot", "v1"), "");
    let unknown = told("hubspot", "v4");
    assert!(unknown.contains("v3, v2, v1, any"), "{unknown}");
    assert!(told("stripe", "v1").contains("scheme"), "stripe has one proof");
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
