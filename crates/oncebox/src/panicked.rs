//! What a panic of somebody else's code says.

use std::any::Any;

/// Code that is not ours panicked.
#[derive(Debug, thiserror::Error)]
#[error("the handler panicked: {0}")]
pub(crate) struct Panicked(String);

impl From<Box<dyn Any + Send>> for Panicked {
    fn from(panic: Box<dyn Any + Send>) -> Self {
        let text = panic
            .downcast::<String>()
            .map(|text| *text)
            .or_else(|panic| panic.downcast::<&str>().map(|text| (*text).to_owned()));
        Self(text.unwrap_or_else(|_| "it does not say why".into()))
    }
}
