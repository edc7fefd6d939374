//! What is wrong with a configuration, where, and what to do about it.

use std::fmt;
use std::ops::Range;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, Severity,
    SourceCode,
};

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Bytes of the configuration file.
    File(Range<usize>),
    /// An environment variable.
    Variable(String),
}

/// One thing that is wrong, or suspicious, in a configuration. It never tells a secret.
#[derive(Clone, Debug)]
pub struct Problem {
    message: String,
    hint: String,
    place: Option<Place>,
    warning: bool,
    /// Boxed, so that a result that may be a problem stays small.
    source: Option<Box<NamedSource<String>>>,
}

impl Problem {
    pub(super) fn error(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
            place: None,
            warning: false,
            source: None,
        }
    }

    pub(super) fn warning(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { warning: true, ..Self::error(message, hint) }
    }

    pub(super) fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    /// Attaches the text that the place refers to, with its secrets masked.
    pub(super) fn within(mut self, file: &str, masked: &str) -> Self {
        if let Some(Place::Variable(name)) = &self.place {
            self.message = format!("{} (from the environment variable {name})", self.message);
        }
        if matches!(self.place, Some(Place::File(_))) {
            let source = NamedSource::new(file, masked.to_owned()).with_language("TOML");
            self.source = Some(Box::new(source));
        }
        self
    }

    /// What is wrong, in a sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it; may be empty.
    pub fn hint(&self) -> &str {
        &self.hint
    }

    /// Whether it should be looked at but stops nothing.
    pub fn is_warning(&self) -> bool {
        self.warning
    }

    /// The line and column it is at, both from 1, where it is in the file.
    pub fn line_and_column(&self) -> Option<(usize, usize)> {
        let (Some(Place::File(span)), Some(source)) = (&self.place, &self.source) else {
            return None;
        };
        let before = source.inner().get(..span.start)?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |text| text.chars().count()) + 1;
        Some((line, column))
    }

    /// The problem with the lines it is about, for a terminal or a log.
    pub fn render(&self, colour: bool) -> String {
        let theme =
            if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(100);
        let mut text = String::new();
        match handler.render_report(&mut text, self) {
            Ok(()) => text,
            Err(_) => format!("{}\n  help: {}\n", self.message, self.hint),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn severity(&self) -> Option<Severity> {
        Some(if self.warning { Severity::Warning } else { Severity::Error })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.hint.is_empty()).then(|| Box::new(&self.hint) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_deref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (Some(Place::File(span)), Some(_)) = (&self.place, &self.source) else { return None };
        let label = LabeledSpan::new_with_span(Some("here".into()), span.clone());
        Some(Box::new(std::iter::once(label)))
    }
}

/// Everything that is wrong with a configuration, found in one go.
#[derive(Debug)]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    pub(super) fn new(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// What is wrong, in the order of the file.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Every problem with the lines it is about.
    pub fn render(&self, colour: bool) -> String {
        self.problems.iter().map(|problem| problem.render(colour)).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().enumerate() {
            if number > 0 {
                f.write_str("; ")?;
            }
            if let Some((line, column)) = problem.line_and_column() {
                write!(f, "line {line}, column {column}: ")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// The candidate nearest to a mistyped word, if any is near.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be added, removed, changed or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().take(64).collect();
    let other: Vec<char> = other.chars().take(64).collect();
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let change = usize::from(one[i - 1] != other[j - 1]);
                let mut least = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                least = least.min(rows[i - 1][j - 1] + change);
                if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                    least = least.min(rows[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_recognised() {
        let keys = ["listen", "admin_listen", "max_body"];
        assert_eq!(nearest("lsiten", keys), Some("listen"));
        assert_eq!(nearest("max_bodies", keys), Some("max_body"));
        assert_eq!(nearest("colour", keys), None);
    }
}
