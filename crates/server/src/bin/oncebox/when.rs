//! Times and durations as people write them on a command line.

use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// A moment: `2h` (that long ago), `2026-01-02`, `2026-01-02T03:04:05Z` or Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// That long before now.
    Ago(Duration),
    /// At this time.
    At(Timestamp),
}

impl When {
    /// The moment it means for somebody who asks at `now`.
    pub(crate) fn before(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::Ago(ago) => SignedDuration::try_from(ago)
                .ok()
                .and_then(|ago| now.checked_sub(ago).ok())
                .unwrap_or(Timestamp::MIN),
        }
    }
}

/// Reads a [`When`]; for clap.
pub(crate) fn when(text: &str) -> Result<When, String> {
    if let Ok(duration) = duration(text) {
        return Ok(When::Ago(duration));
    }
    if let Ok(time) = unix(text) {
        return Ok(When::At(time));
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(When::At(time));
    }
    let midnight = text.parse::<Date>().ok().and_then(|day| day.to_zoned(TimeZone::UTC).ok());
    midnight.map(|midnight| When::At(midnight.timestamp())).ok_or_else(|| {
        "expected a time such as 2h, 2026-01-02, 2026-01-02T03:04:05Z or 1760000000".to_owned()
    })
}

/// Reads Unix seconds; for clap.
pub(crate) fn unix(text: &str) -> Result<Timestamp, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .ok_or_else(|| "expected Unix seconds, such as 1760000000".to_owned())
}

/// Reads a duration such as `90s`, `10m`, `2h` or `7d`; for clap.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a duration such as 90s, 10m, 2h or 7d".to_owned();
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds_each: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let number: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(u64::from(number) * seconds_each))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now = Timestamp::from_second(1_760_000_000).unwrap();
        let read = |text| when(text).unwrap().before(now).to_string();
        assert_eq!(read("2h"), "2025-10-09T06:53:20Z");
        assert_eq!(read("2025-10-01"), "2025-10-01T00:00:00Z");
        assert_eq!(read("2025-10-01T12:00:00+02:00"), "2025-10-01T10:00:00Z");
        assert_eq!(read("1760000000"), "2025-10-09T08:53:20Z");
        assert!(when("yesterday").is_err());
        assert!(when("").is_err());
        assert!(when("5µ").is_err());
    }
}
