//! Durations, sizes and names as the configuration writes them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration such as `300ms`, `5m` or `30d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(pub Duration);

const PERIODS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl Period {
    /// A period of whole seconds.
    pub const fn secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// A period of whole hours.
    pub const fn hours(hours: u64) -> Self {
        Self::secs(hours * 3600)
    }

    /// A period of whole days.
    pub const fn days(days: u64) -> Self {
        Self(Duration::from_secs(days * 86_400))
    }
}

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let milliseconds = parse(text, &PERIODS)
            .ok_or_else(|| format!("{text:?} is not a duration; {}", advice(text, "5m")))?;
        Ok(Self(Duration::from_millis(milliseconds)))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        show(f, milliseconds, &PERIODS)
    }
}

/// A number of bytes such as `64KiB` or `25MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

const SIZES: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

impl Size {
    /// The size in bytes.
    pub fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = parse(text, &SIZES);
        bytes.map(Self).ok_or_else(|| format!("{text:?} is not a size; write 25MiB"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.0, &SIZES)
    }
}

/// Reads a whole number and its unit.
fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.checked_mul(*factor)
}

/// What to write instead: the same number with the unit that seems to be meant, else an example.
fn advice(text: &str, example: &str) -> String {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let names =
        [("millisecond", "ms"), ("second", "s"), ("minute", "m"), ("hour", "h"), ("day", "d")];
    let is_meant =
        |(name, _): &&(&str, &str)| unit.len() > 1 && name.starts_with(unit.trim_end_matches('s'));
    let meant = names.iter().find(is_meant);
    match meant.filter(|_| !number.is_empty()) {
        Some((_, short)) => format!("write {number}{short}"),
        None => format!("write {example}"),
    }
}

/// Writes a number in the largest unit that divides it.
fn show(f: &mut fmt::Formatter<'_>, number: u64, units: &[(&str, u64)]) -> fmt::Result {
    let fits = |(_, factor): &&(&str, u64)| number != 0 && number.is_multiple_of(*factor);
    let (name, factor) = units.iter().rev().find(fits).unwrap_or(&units[units.len().min(2) - 1]);
    write!(f, "{}{name}", number / factor)
}

macro_rules! written_as_text {
    ($type:ident, $pattern:literal, $example:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "examples": [$example] })
            }
        }
    };
}

written_as_text!(Period, r"^\d+ *(ms|s|m|h|d)$", "30d");
written_as_text!(Size, r"^\d+ *(B|KiB|MiB|GiB)$", "25MiB");

/// Whether a source or a route may be called this.
pub fn is_name(name: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut bytes = name.as_bytes().iter();
    bytes.next().is_some_and(plain)
        && bytes.all(|byte| plain(byte) || *byte == b'-')
        && name.len() <= 63
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_and_sizes_are_written_as_they_are_read() {
        for text in ["300ms", "1s", "20s", "5m", "36h", "30d"] {
            assert_eq!(text.parse::<Period>().unwrap().to_string(), text);
        }
        for text in ["17B", "64KiB", "25MiB", "2GiB"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        for text in ["", "5", "m", "-1s", "5 parsecs", "1.5h", "99999999999999999999d"] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
        assert_eq!("0s".parse::<Period>().unwrap().to_string(), "0s");
        let wrong = |text: &str| text.parse::<Period>().unwrap_err();
        assert_eq!(wrong("5 minutes"), "\"5 minutes\" is not a duration; write 5m");
        assert_eq!(wrong("30 days"), "\"30 days\" is not a duration; write 30d");
        assert_eq!(wrong("90 sec"), "\"90 sec\" is not a duration; write 90s");
        assert_eq!(wrong("soon"), "\"soon\" is not a duration; write 5m");
    }

    #[test]
    fn names_are_short_and_plain() {
        for name in ["a", "stripe-live", "0", &"x".repeat(63)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "-a", "A", "a_b", "a.b", "ü", "a/b", &"x".repeat(64)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
