//! How a command ends: what is told to people on stderr, and to scripts as the exit code.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use oncebox::store::StoreError;

/// The exit codes other than 0. Scripts rely on them; they are never renumbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// It was tried and did not work.
    Failed = 1,
    /// Wrong usage.
    Usage = 2,
    /// What was named does not exist.
    NotFound = 3,
    /// A check did not hold: a signature, a digest, an expectation.
    Check = 4,
    /// The store cannot be reached or used.
    StoreUnavailable = 69,
    /// The configuration is missing or wrong.
    Configuration = 78,
}

/// Why a command did not end well, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Option<Code>,
    message: Message,
    hint: Option<String>,
}

#[derive(Debug)]
enum Message {
    /// A sentence, printed after `error: `.
    Sentence(String),
    /// A report that was laid out already, printed as it is.
    Report(String),
    /// Nothing: what there is to say is on stdout.
    Told,
}

impl Failure {
    /// A failure and what happened, in words that carry no secret.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code: Some(code), message: Message::Sentence(message.into()), hint: None }
    }

    /// Something was tried and did not work.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Code::Failed, message)
    }

    /// Wrong usage.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    /// What was named does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// A check did not hold.
    pub(crate) fn check(message: impl Into<String>) -> Self {
        Self::new(Code::Check, message)
    }

    /// The configuration is missing or wrong.
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(Code::Configuration, message)
    }

    /// A failure whose explanation was laid out already, such as a report that quotes the
    /// configuration. It is printed to stderr as it is.
    pub(crate) fn report(code: Code, text: impl Into<String>) -> Self {
        Self { code: Some(code), message: Message::Report(text.into()), hint: None }
    }

    /// A failure that the command's own output on stdout has told already.
    pub(crate) fn told(code: Code) -> Self {
        Self { code: Some(code), message: Message::Told, hint: None }
    }

    /// Adds what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What scripts are told.
    pub(crate) fn exit_code(&self) -> ExitCode {
        self.code.map_or(ExitCode::SUCCESS, |code| ExitCode::from(code as u8))
    }

    /// What people are told.
    pub(crate) fn print(&self) {
        let stderr = io::stderr();
        let colour = stderr.is_terminal() && !no_colour();
        let (red, cyan, plain) =
            if colour { ("\x1b[1;31m", "\x1b[36m", "\x1b[0m") } else { ("", "", "") };
        let mut stderr = stderr.lock();
        // A closed stderr leaves nobody to tell; the exit code still says it.
        let _ = match &self.message {
            Message::Sentence(text) => writeln!(stderr, "{red}error{plain}: {text}"),
            Message::Report(text) => writeln!(stderr, "{}", text.trim_end()),
            Message::Told => Ok(()),
        };
        if let Some(hint) = &self.hint {
            let _ = writeln!(stderr, "{cyan}hint{plain}: {hint}");
        }
    }
}

/// Whether the user asked for output without colour: <https://no-color.org>.
pub(crate) fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            // Whoever read our output, such as `head`, has seen enough.
            return Self { code: None, message: Message::Told, hint: None };
        }
        Self::failed(error.to_string())
    }
}

/// How PostgreSQL says that a role may not do something. Its words differ by language.
const INSUFFICIENT_PRIVILEGE: &str = "(42501)";

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unfit { problem, hint } => {
                Self::new(Code::StoreUnavailable, problem).hint(hint)
            }
            StoreError::NotMigrated => {
                Self::new(Code::StoreUnavailable, "the store's schema is not up to date")
                    .hint("run `oncebox migrate up`")
            }
            StoreError::Data(_) => Self::failed(error.to_string()),
            StoreError::Unavailable(reason) if reason.contains(INSUFFICIENT_PRIVILEGE) => {
                let message = format!("the database refuses: {reason}");
                Self::new(Code::StoreUnavailable, message).hint(
                    "the role in `[store] url` may not do this; use that of the server, or grant \
                     it what it needs: docs/postgresql.md",
                )
            }
            StoreError::Unavailable(_) => Self::new(Code::StoreUnavailable, error.to_string())
                .hint("check `[store] url` in the configuration, and that the database answers"),
            other => Self::new(Code::StoreUnavailable, other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(failure.code, None);
        let failure = Failure::from(io::Error::from(io::ErrorKind::PermissionDenied));
        assert_eq!(failure.code, Some(Code::Failed));
    }

    #[test]
    fn store_errors_keep_their_hint() {
        let unfit = StoreError::Unfit { problem: "too old".into(), hint: "Upgrade it.".into() };
        let failure = Failure::from(unfit);
        assert_eq!(failure.code, Some(Code::StoreUnavailable));
        assert_eq!(failure.hint.as_deref(), Some("Upgrade it."));
    }

    #[test]
    fn a_role_that_may_not_is_not_a_database_that_is_away() {
        let refused = "permission denied for table routes (42501)";
        let failure = Failure::from(StoreError::Unavailable(refused.to_owned()));
        assert_eq!(failure.code, Some(Code::StoreUnavailable));
        assert!(failure.hint.is_some_and(|hint| hint.contains("may not do this")));
    }
}
