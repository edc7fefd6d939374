//! `[log]`: what is logged to stderr, and how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reader::Section;

/// `[log]`: what is logged to stderr, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct LogConfig {
    /// How a line is written.
    pub format: LogFormat,
    /// The least important level that is logged.
    pub level: LogLevel,
}

/// How a log line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people on a terminal, as JSON elsewhere.
    #[default]
    Auto,
    /// For people.
    Pretty,
    /// For people on a narrow terminal: one short line per decision and attempt.
    Short,
    /// One JSON object per line.
    Json,
}

/// How important a log line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Only what needs a person.
    Error,
    /// And what may need one soon; a decision on a webhook only if it was our fault.
    Warn,
    /// And one line per decision on a webhook.
    #[default]
    Info,
    /// And what helps to find an error.
    Debug,
    /// Everything.
    Trace,
}

const FORMATS: &str = "\"auto\", \"pretty\", \"short\" or \"json\"";

impl LogConfig {
    pub(super) fn read(mut section: Section<'_>) -> Self {
        let levels = "\"error\", \"warn\", \"info\", \"debug\" or \"trace\"";
        let log = Self {
            format: section.or("format", FORMATS, LogFormat::Auto),
            level: section.or("level", levels, LogLevel::Info),
        };
        section.finish();
        log
    }
}
