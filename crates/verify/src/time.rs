//! Reading and writing the times that are signed.

use jiff::Timestamp;
use jiff::fmt::rfc2822;

use crate::provider::TimeFormat;

/// What is less is no number of milliseconds but of seconds: as milliseconds it would be in 1973,
/// as seconds it is not reached before the year 5138.
const MILLISECONDS_MIN: i64 = 100_000_000_000;

/// Whether text says its zone, so that no part of it in front is a time as well.
pub(crate) fn says_zone(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok()
}

/// Reads a time exactly as its format is written: no sign, no space, no fraction
/// where none belongs.
pub(crate) fn parse(text: &str, format: TimeFormat) -> Option<Timestamp> {
    let digits = || digits(text);
    match format {
        TimeFormat::Seconds => {
            Timestamp::from_second(digits().filter(|secs| *secs < MILLISECONDS_MIN)?).ok()
        }
        TimeFormat::Milliseconds => {
            Timestamp::from_millisecond(digits().filter(|ms| *ms >= MILLISECONDS_MIN)?).ok()
        }
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
