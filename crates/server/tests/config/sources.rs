//! Sources: their secrets, settings, rates and memory.

use oncebox::receipt::{OddAct, OddRules};
use oncebox_server::config::{Config, Environment, Period};

use crate::{errors, parse};

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

/// What every provider needs, where the configuration does not say how long identities are kept.
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
