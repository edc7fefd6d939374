//! Reading and writing the times that are signed.

use jiff::Timestamp;
use jiff::fmt::rfc2822;

use crate::provider::TimeFormat;

/// Reads a time exactly as its format is written: no sign, no space, no fraction
/// where none belongs.
pub(crate) fn parse(text: &str, format: TimeFormat) -> Option<Timestamp> {
    match format {
        TimeFormat::Seconds => Timestamp::from_second(digits(text)?).ok(),
        TimeFormat::Milliseconds => Timestamp::from_millisecond(digits(text)?).ok(),
        TimeFormat::Iso8601 => text.parse().ok().or_else(|| format!("{text}Z").parse().ok()),
        TimeFormat::HttpDate => rfc2822::parse(text).ok().map(|zoned| zoned.timestamp()),
        TimeFormat::Nonce => None,
    }
}

/// Writes a time in its format.
pub(crate) fn print(at: Timestamp, format: TimeFormat) -> String {
    match format {
        TimeFormat::Seconds | TimeFormat::Nonce => at.as_second().to_string(),
        TimeFormat::Milliseconds => at.as_millisecond().to_string(),
        TimeFormat::Iso8601 => at.to_string(),
        TimeFormat::HttpDate => at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(),
    }
}

fn digits(text: &str) -> Option<i64> {
    let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if all_digits { text.parse().ok() } else { None }
}
