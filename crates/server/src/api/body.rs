//! Reading a JSON body within its limits.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// Reads the body of a request, of so many bytes at most. None at all is an empty object.
pub(super) async fn read<T: DeserializeOwned>(
    request: Request<Body>,
    most: usize,
    time: Duration,
) -> Result<T, Problem> {
    let reading = Limited::new(request.into_body(), most).collect();
    let read = tokio::time::timeout(time, reading).await.map_err(|_| Problem::too_slow())?;
    let bytes = read.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => Problem::too_large(most),
        None => Problem::invalid("the body ended before its length"),
    })?;
    let bytes = bytes.to_bytes();
    let text = if bytes.is_empty() { b"{}" } else { bytes.as_ref() };
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let error = error.into_inner();
        match path.as_str() {
            "." => Problem::invalid(format!("the body cannot be read: {error}")),
            path => Problem::invalid(format!("`{path}`: {error}")),
        }
    })?;
    match json.end() {
        Ok(()) => Ok(read),
        Err(error) => Err(Problem::invalid(format!("the body cannot be read: {error}"))),
    }
}
