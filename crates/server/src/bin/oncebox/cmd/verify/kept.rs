//! A request that a source rejected and kept: it is judged again, as it came.

use http::{HeaderMap, HeaderName, HeaderValue};
use oncebox::clock::{Clock, SystemClock};
use oncebox::receipt::{SourceNo, decode_headers};
use oncebox::store::Rejected;

use super::{Verify, keyring};
use crate::Global;
use crate::capture::Capture;
use crate::cmd::sources::rejected;
use crate::context::{self, Source};
use crate::exit::Failure;
use crate::output::escape;

impl Verify {
    /// The kept request that is named, unless a file is.
    pub(super) async fn kept(&self, global: &Global) -> Result<Option<Rejected>, Failure> {
        let Some(text) = self.capture.to_str() else { return Ok(None) };
        if text == "-" || self.capture.exists() {
            return Ok(None);
        }
        if !rejected::may_be_id(text) {
            return Ok(None);
        }
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let found = rejected::find(&*store, text).await;
        store.close().await;
        found?.map(Some).ok_or_else(|| {
            let text = escape(text);
            Failure::not_found(format!("no file and no kept request named `{text}`")).hint(
                "rejected requests are kept for a day where their source sets `keep_rejected`; \
                 `oncebox sources rejected` lists them",
            )
        })
    }

    /// Judges a kept request by what its source is configured with now, at the time it came, unless
    /// the command line says otherwise.
    pub(super) async fn verify_kept(&self, global: &Global, kept: Rejected) -> Result<(), Failure> {
        let (number, at) = (kept.source, kept.rejection.at);
        let mut capture = capture(kept);
        if let Some(url) = &self.url {
            capture.url.clone_from(url);
        }
        let source = match &self.provider {
            Some(name) => self.given(name, || Ok(capture.clone()))?,
            None => {
                let (name, source) = self.source_of(global, number).await?;
                let notice = format!("judged as source `{}` is configured now", escape(&name));
                capture.notices.push(notice);
                source
            }
        };
        let keyring =
            keyring(&source).map_err(|bad| Failure::usage(bad.to_string()).hint(bad.hint()))?;
        let now = SystemClock.now();
        let at = self.at.map_or(at, |at| at.before(now));
        self.tell(&source.provider, &keyring, &capture, at)
    }

    /// The source that a kept request was sent to, or that is named, with the secrets that are
    /// given.
    async fn source_of(
        &self,
        global: &Global,
        number: SourceNo,
    ) -> Result<(String, Source), Failure> {
        if !self.settings.is_empty() {
            return Err(Failure::usage("--set is about a provider, and none is named")
                .hint("add --provider NAME, or set the key in the configuration of the source"));
        }
        let config = context::config_or_dev(global)?;
        let store = context::open(&config.store.url).await?;
        let names = store.sources().await;
        store.close().await;
        let name = names?.into_iter().find(|(known, _)| *known == number);
        let name = self.source.clone().or(name.map(|(_, name)| name)).unwrap_or_default();
        let mut source = context::source(&config, &name)?;
        match self.secrets.is_empty() {
            true => source.secrets.extend(context::told_secrets(&config, &name).await?),
            false => source.secrets = self.given_secrets()?,
        }
        Ok((name, source))
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
