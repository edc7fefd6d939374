//! eBay: a signature that says how it was made, and is not asked.

use http::HeaderValue;
use oncebox_verify::{Keyring, Secret, generate_pair, verify};
use serde_json::Value;

use crate::bed::{base64, decode, find, now, signed};

#[test]
fn ebay_names_no_algorithm_of_its_own() {
    let ebay = find("ebay");
    let pair = generate_pair(ebay).unwrap();
    let draft = signed(ebay, &pair.private);
    let keyring = Keyring::new(ebay, vec![Secret::new(pair.public.clone())]).unwrap();
    let sent: Value =
        serde_json::from_slice(&decode(draft.headers["x-ebay-signature"].to_str().unwrap()))
            .unwrap();
    let check = |edit: &dyn Fn(&mut Value)| {
        let (mut sent, mut draft) = (sent.clone(), draft.clone());
        edit(&mut sent);
        let value = HeaderValue::from_str(&base64(sent.to_string().as_bytes())).unwrap();
        draft.headers.insert("x-ebay-signature", value);
        verify(ebay, &keyring, &draft.request(), now()).map_err(|rejection| rejection.code())
    };
    assert!(check(&|_| {}).is_ok());
    assert_eq!(check(&|sent| sent["alg"] = "none".into()), Err("unknown_algorithm"));
    assert_eq!(check(&|sent| sent["alg"] = "HS256".into()), Err("unknown_algorithm"));
    assert_eq!(check(&|sent| sent["digest"] = "MD5".into()), Err("unknown_algorithm"));
    assert_eq!(check(&|sent| sent["signature"] = "".into()), Err("malformed_signature"));
    assert_eq!(check(&|sent| sent["signature"] = 1.into()), Err("malformed_signature"));
    let signature = sent["signature"].as_str().unwrap();
    for place in 0..decode(signature).len() {
        let mut changed = decode(signature);
        changed[place] ^= 1;
        let changed = base64(&changed);
        assert!(check(&|sent| sent["signature"] = changed.clone().into()).is_err());
    }
}
