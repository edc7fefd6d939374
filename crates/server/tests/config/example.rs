//! The example, the defaults and the schema.

use oncebox_server::config::{Config, STARTER};

use crate::{EXAMPLE, parse};

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
fn a_printed_configuration_can_be_read() {
    let text = "[sources.a]\nprovider = \"stripe\"\nsecrets = [\"12345678\"]\n\
                [routes.r]\nsources = [\"a\"]\npull = true\nsame_operation = \"object\"\n\
                [routes.s]\nsources = [\"a\"]\npush = \"https://example.com\"\n";
    let config = parse(text).unwrap();
    assert_eq!(parse(&config.print()).unwrap().print(), config.print());
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
