//! Running the command, and explaining itself when it does not do what a test expects.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use jiff::Timestamp;
use oncebox_verify::{Draft, Provider, SampleEvent, Secret, catalogue, sample, sign};

/// A secret that must never be seen again.
pub(crate) const SECRET: &str = "whsec_Y2FuYXJ5LW5ldmVyLXByaW50ZWQtMTIz";

/// The time most tests stand at.
pub(crate) fn noon() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

/// What a run of the command came to.
pub(crate) struct Run {
    args: Vec<String>,
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { args, code, stdout, stderr } = self;
        writeln!(f, "oncebox {}\nexit {code}", args.join(" "))?;
        write!(f, "--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}

impl Run {
    /// Expects an exit code, and that no secret was printed.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Run {
        assert_eq!(self.code, code, "{self}");
        assert!(
            !format!("{}{}", self.stdout, self.stderr).contains("Y2FuYXJ5"),
            "secret in {self}"
        );
        self
    }

    /// Expects text on stdout.
    #[track_caller]
    pub(crate) fn prints(self, text: &str) -> Run {
        assert!(self.stdout.contains(text), "expected `{text}` in {self}");
        self
    }

    /// Expects text on stderr.
    #[track_caller]
    pub(crate) fn tells(self, text: &str) -> Run {
        assert!(self.stderr.contains(text), "expected `{text}` on stderr of {self}");
        self
    }

    /// The lines of stdout, each a JSON object.
    #[track_caller]
    pub(crate) fn json(&self) -> Vec<serde_json::Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{self}"))
        };
        self.stdout.lines().map(parse).collect()
    }
}

/// Runs the command in `dir` with nothing of our own environment that could change it.
pub(crate) fn oncebox_in(dir: &Path, args: &[&str], stdin: &[u8]) -> Run {
    run(dir, args, stdin, &[])
}

/// As [`oncebox_in`], with variables.
pub(crate) fn oncebox_with(dir: &Path, args: &[&str], variables: &[(&str, &str)]) -> Run {
    run(dir, args, b"", variables)
}

fn run(dir: &Path, args: &[&str], stdin: &[u8], variables: &[(&str, &str)]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oncebox"));
    let ours = std::env::vars_os().map(|(name, _)| name);
    for name in ours.filter(|name| name.to_string_lossy().starts_with("ONCEBOX")) {
        command.env_remove(name);
    }
    command.env_remove("COLUMNS").env("NO_COLOR", "1").env("CANARY", SECRET);
    command.envs(variables.iter().copied()).current_dir(dir).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that does not read its input closes the pipe; that is its right.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let output = child.wait_with_output().unwrap();
    Run {
        args: args.iter().map(ToString::to_string).collect(),
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs the command in an empty folder.
pub(crate) fn oncebox(args: &[&str]) -> Run {
    oncebox_in(tempfile::tempdir().unwrap().path(), args, b"")
}

/// A provider of the catalogue.
pub(crate) fn provider(name: &str) -> &'static Provider {
    catalogue::find(name).unwrap()
}

/// A sample event of a provider, signed at a time.
pub(crate) fn signed(name: &str, secret: &str, at: Timestamp) -> Draft {
    let provider = provider(name);
    let event = SampleEvent { id: "evt_1", event_type: "", at, object: None };
    sign(provider, &Secret::new(secret), sample(provider, &event), at).unwrap()
}

/// A request as on the wire.
pub(crate) fn wire(draft: &Draft) -> Vec<u8> {
    let mut bytes = b"POST /in/a HTTP/1.1\r\nHost: example.com\r\n".to_vec();
    for (name, value) in &draft.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&draft.body);
    bytes
}
