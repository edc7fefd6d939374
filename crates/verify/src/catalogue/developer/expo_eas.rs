//! Expo EAS: HMAC-SHA1 over the body, hex after `sha1=`, in `expo-signature`.
//!
//! <https://docs.expo.dev/eas/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "expo-eas",
    title: "Expo EAS",
    docs: "https://docs.expo.dev/eas/webhooks/",
    schemes: items![hmac(in_header("expo-signature")).sha1().prefix("sha1=").scheme()],
    identity: items![Identity::Digest],
    event_type: items![kind_with(json("/status"), json("/platform"))],
    object: items![json("/id")],
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The secret that was given to eas webhook:create.",
    sample_type: "finished.ios",
    sample_body: r#"{"accountName":"sample","projectName":"sample","artifacts":{}}"#,
    sample_object: "147a3212-49fd-446f-b4e3-a6519acf264a",
    ..BLANK
}
.provider();
