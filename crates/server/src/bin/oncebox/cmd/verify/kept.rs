//! A request that a source rejected and kept: it is judged again, as it came.

use http::{HeaderMap, HeaderName, HeaderValue};
use oncebox::receipt::decode_headers;
use oncebox::store::Rejected;

use super::{Verify, keyring};
use crate::Global;
use crate::capture::Capture;
use crate::cmd::sources::rejected;
use crate::context;
use crate::exit::Failure;
use crate::output::escape;

impl Verify {
    /// The kept request that is named, unless a file is.
    pub(super) async fn kept(&self, global: &Global) -> Result<Option<Rejected>, Failure> {
        let Some(text) = self.capture.to_str() else { return Ok(None) };
        if text == "-" || self.capture.exists() {
            return Ok(None);
        }
        let Ok(config) = context::config_or_dev(global) else { return Ok(None) };
        let Ok(store) = context::open(&config.store.url).await else { return Ok(None) };
        let found = rejected::find(&*store, text).await;
        store.close().await;
        found
    }

    /// Judges a kept request by what its source is configured with now, at the time it came.
    pub(super) async fn verify_kept(&self, global: &Global, kept: Rejected) -> Result<(), Failure> {
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let names = store.sources().await;
        store.close().await;
        let name = names?.into_iter().find(|(number, _)| *number == kept.source);
        let name = self.source.clone().or(name.map(|(_, name)| name)).unwrap_or_default();
        let mut source = context::source(&config, &name)?;
        source.secrets.extend(context::told_secrets(&config, &name).await?);
        let keyring =
            keyring(&source).map_err(|bad| Failure::usage(bad.to_string()).hint(bad.hint()))?;
        let at = kept.rejection.at;
        let mut capture = capture(kept);
        capture.notices.push(format!("judged as source `{}` is configured now", escape(&name)));
        self.tell(&source.provider, &keyring, &capture, at)
    }
}

fn capture(kept: Rejected) -> Capture {
    let mut headers = HeaderMap::new();
    for (name, value) in decode_headers(&kept.headers) {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&value)) {
            headers.append(name, value);
        }
    }
    let mut notices = Vec::new();
    let here = kept.body.len();
    if kept.body_bytes > here as u64 {
        notices.push(format!(
            "of the body's {} bytes only {here} were kept, so a signature over all of it cannot \
             match",
            kept.body_bytes
        ));
    }
    Capture {
        method: kept.method,
        url: kept.url,
        headers,
        body: kept.body,
        notices,
        received_at: Some(kept.rejection.at),
    }
}
