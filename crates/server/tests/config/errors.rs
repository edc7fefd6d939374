//! What is wrong, told with its place and what to do.

use oncebox_server::config::{Config, Environment, Problem, SecretRef};

use crate::{errors, parse, parse_with};

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
    7:11 source `Stripe` has no secret | write secrets = ["env:NAME"]; without one any sender passes for it
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
