//! A weaker proof in place of a stronger one that was removed.

use oncebox_verify::{
    Algorithm, Draft, Keyring, Provider, Scheme, Secret, Settings, Unsaid, catalogue, verify,
};

use crate::case::{draft, none, now};

/// How strong a scheme is: whether it signs anything, a time, and with a keyed hash.
fn strength(scheme: &Scheme) -> (bool, bool, bool) {
    let is_plain = |algorithm| matches!(algorithm, Algorithm::Sha1 | Algorithm::Sha256);
    let is_plain = scheme.signature().is_some_and(|signature| is_plain(signature.algorithm));
    let is_token = matches!(scheme, Scheme::Token(_));
    (!is_token, scheme.signs_timestamp(), !is_plain)
}

#[test]
fn entries_with_schemes_of_several_strengths_let_a_source_choose() {
    let differs = |provider: &&&Provider| {
        let first = strength(&provider.schemes[0]);
        provider.schemes.iter().any(|scheme| strength(scheme) != first)
    };
    let named = catalogue::ALL.iter().filter(differs).map(|provider| &*provider.name);
    let expected =
        ["azure-event-grid", "buildkite", "creem", "flutterwave", "gitlab", "hubspot", "recharge"];
    assert_eq!(named.collect::<Vec<_>>(), expected);
    for provider in catalogue::ALL.iter().filter(differs) {
        let choice = provider.choice.expect(&provider.name);
        let chosen: Vec<usize> =
            choice.ways.iter().flat_map(|way| way.schemes.iter().copied()).collect();
        let mut sorted = chosen.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..provider.schemes.len()), "{}", provider.name);
        let strengths = chosen.iter().map(|number| strength(&provider.schemes[*number]));
        let strengths: Vec<_> = strengths.collect();
        assert!(strengths.is_sorted_by(|a, b| a >= b), "{}: {strengths:?}", provider.name);
        let requires = ["hubspot", "recharge"].contains(&provider.name.as_ref());
        assert_eq!(choice.unsaid == Unsaid::Strongest, requires, "{}", provider.name);
    }
}

fn keyring(provider: &Provider, secret: &str, scheme: Option<&str>) -> Keyring {
    let scheme = scheme.map(|scheme| ("scheme".to_owned(), scheme.to_owned()));
    let settings: Settings = scheme.into_iter().collect();
    Keyring::with_settings(provider, vec![Secret::new(secret)], settings).unwrap()
}

/// A request of each way, and what a source that requires the strongest says to it.
#[test]
fn a_removed_proof_leaves_nothing_weaker() {
    let mut wrong = Vec::new();
    for provider in catalogue::ALL.iter().copied() {
        let Some(choice) = provider.choice else { continue };
        for way in choice.ways.iter().skip(1) {
            // No test signs a token of Entra; the other way is what matters.
            let secret = match provider.name.as_ref() {
                "gitlab" => "a-static-token",
                _ => "a-secret-of-some-length",
            };
            let weak = keyring(provider, secret, Some(way.name));
            let weaker = oncebox_verify::sign_with(provider, &weak, draft(provider), now());
            let weaker = weaker.unwrap_or_else(|error| panic!("{}: {error}", provider.name));
            let code = |keyring: &Keyring| {
                verify(provider, keyring, &weaker.request(), now())
                    .map(|verified| verified.way)
                    .map_err(|rejection| rejection.code())
            };
            let said = [code(&weak), code(&keyring(provider, secret, Some("any")))];
            if said.iter().any(|said| *said != Ok(Some(way.name))) {
                wrong.push(format!("{}: {} on request: {said:?}", provider.name, way.name));
            }
            let silent = keyring(provider, secret, None);
            match choice.unsaid {
                Unsaid::Strongest => {
                    if code(&silent) != Err("weaker_scheme") {
                        wrong.push(format!("{}: {:?}", provider.name, code(&silent)));
                    }
                }
                Unsaid::Learned => {
                    assert!(silent.learns(provider) && code(&silent).is_ok(), "{}", provider.name);
                    let learned = match provider.name.as_ref() {
                        // Both kinds of secret, as while changing from one to the other.
                        "gitlab" | "creem" => with_both(provider, secret),
                        _ => silent,
                    };
                    let learned = learned.with_strongest(provider).unwrap();
                    if code(&learned) != Err("weaker_scheme") || learned.learns(provider) {
                        wrong.push(format!("{}: {:?}", provider.name, code(&learned)));
                    }
                }
            }
        }
    }
    none(&wrong);
}

fn with_both(provider: &Provider, secret: &str) -> Keyring {
    let secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", secret].map(Secret::new);
    Keyring::new(provider, secrets.to_vec()).unwrap()
}

/// The strongest way decides where both are there: a wrong one is not saved by the other.
#[test]
fn the_strongest_proof_decides() {
    for provider in catalogue::ALL.iter().copied() {
        let Some(choice) = provider.choice else { continue };
        let strongest = &provider.schemes[choice.ways[0].schemes[0]];
        let Some(header) = strongest.header() else { continue };
        if strongest.signature().is_none() {
            continue;
        }
        let way = &choice.ways[1];
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let both = match provider.name.as_ref() {
            "gitlab" => with_both(provider, "a-static-token"),
            _ => keyring(provider, secret, Some("any")),
        };
        let weak = match provider.name.as_ref() {
            "gitlab" => keyring(provider, "a-static-token", Some(way.name)),
            _ => keyring(provider, secret, Some(way.name)),
        };
        let weaker = oncebox_verify::sign_with(provider, &weak, draft(provider), now()).unwrap();
        let mut forged: Draft = weaker.clone();
        forged.headers.insert(
            http::HeaderName::from_bytes(header.as_bytes()).unwrap(),
            http::HeaderValue::from_static("t=1760000000,v1=00,timestamp=1760000000,signature=00"),
        );
        let code = |draft: &Draft| verify(provider, &both, &draft.request(), now()).is_ok();
        assert!(code(&weaker), "{}", provider.name);
        assert!(!code(&forged), "{}", provider.name);
    }
}

/// What a source says must be a way of its provider, with a secret that fits.
#[test]
fn a_way_that_is_not_known_is_an_error() {
    let gitlab = catalogue::find("gitlab").unwrap();
    let with = |scheme: &str, secret: &str| {
        let settings = Settings::from([("scheme".to_owned(), scheme.to_owned())]);
        Keyring::with_settings(gitlab, vec![Secret::new(secret)], settings)
            .map(|_| ())
            .map_err(|bad| bad.code())
    };
    assert_eq!(with("signature", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), Ok(()));
    assert_eq!(with("token", "a-static-token"), Ok(()));
    assert_eq!(with("v3", "a-static-token"), Err("unknown_scheme"));
    assert_eq!(with("signature", "a-static-token"), Err("unfit"));
}
