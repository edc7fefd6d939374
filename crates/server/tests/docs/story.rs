//! The blocks of a page, run one after the other as a reader would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use oncebox_testkit::ports::free_port;
use oncebox_testkit::process::ServerProcess;
use oncebox_testkit::wait::{DEADLINE, holds_within};
use tempfile::TempDir;

use crate::page::{Block, Page, page};

/// A server in its own folder and the terminal beside it.
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) public: u16,
    pub(crate) admin: u16,
    /// Where the program of the reader listens.
    consumer: u16,
    /// What was exported so far.
    exported: Vec<(String, String)>,
    consumers: Vec<ServerProcess>,
    pub(crate) server: Option<ServerProcess>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The program under the name that the pages call it by.
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_oncebox"), bin.join("oncebox")).unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let (public, admin, consumer) = (free_port(), free_port(), free_port());
        let (exported, consumers) = (Vec::new(), Vec::new());
        Self { folder, public, admin, consumer, exported, consumers, server: None }
    }

    /// A running `oncebox dev`.
    pub(crate) fn dev() -> Self {
        let mut place = Self::new();
        let (public, admin) = (place.public, place.admin);
        let line = format!(
            "exec oncebox dev --listen 127.0.0.1:{public} --admin-listen 127.0.0.1:{admin}"
        );
        let server = place.spawn(&line);
        server.wait_for("its last line", |line| line.contains("Ctrl-C").then_some(()));
        place.server = Some(server);
        place
    }

    /// A folder for `oncebox serve`, on ports of its own.
    fn for_serve() -> Self {
        let mut place = Self::new();
        for (key, port) in [("LISTEN", place.public), ("ADMIN_LISTEN", place.admin)] {
            let variable = format!("ONCEBOX__SERVER__{key}");
            place.exported.push((variable, format!("127.0.0.1:{port}")));
        }
        place
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn path_variable(&self) -> String {
        let rest = std::env::var("PATH").unwrap_or_default();
        format!("{}:{rest}", self.folder.path().join("bin").display())
    }

    fn spawn(&self, line: &str) -> ServerProcess {
        let script = format!("cd '{}' && {line}", self.work().display());
        let mut variables = self.exported.clone();
        variables.push(("PATH".into(), self.path_variable()));
        ServerProcess::spawn(Path::new("sh"), ["-c", &script], variables)
    }

    /// The text with the ports of this place.
    fn fit(&self, text: &str) -> String {
        let ports = [(8080, self.public), (8081, self.admin), (3000, self.consumer)];
        let written = |port: u16| format!("127.0.0.1:{port}");
        ports.iter().fold(text.to_owned(), |text, (shown, own)| {
            text.replace(&written(*shown), &written(*own))
        })
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.work().join(file), self.fit(text)).unwrap();
    }

    /// Starts the program of the reader beside the server.
    fn start_consumer(&mut self, line: &str) {
        let consumer = self.spawn(&format!("exec {}", line.trim()));
        consumer.wait_for("its first line", |line| line.contains("listening").then_some(()));
        self.consumers.push(consumer);
    }

    /// Runs a script until its output has a text.
    fn run_until(&mut self, script: &str, text: &str, what: &str) -> String {
        let mut printed = String::new();
        let came = holds_within(DEADLINE, || {
            printed = self.run(script, 0, what);
            printed.contains(text)
        });
        let log = self.server.as_ref().map(ServerProcess::log).unwrap_or_default();
        assert!(came, "{what}: never printed {text}, but\n{printed}\n--- server\n{log}");
        printed
    }

    /// Runs a script in this place, and remembers what it exports.
    pub(crate) fn run(&mut self, script: &str, code: i32, what: &str) -> String {
        let script = script.replace("cargo run --release --", "oncebox");
        let script = self.fit(&script.replace("./target/release/oncebox", "oncebox"));
        let mut command = Command::new("sh");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ONCEBOX") {
                command.env_remove(name);
            }
        }
        command.args(["-eu", "-c", &script]).current_dir(self.work()).stdin(Stdio::null());
        command.env("NO_COLOR", "1").env("PATH", self.path_variable());
        let output = command.envs(self.exported.iter().cloned()).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{what}:\n{script}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
        );
        for line in script.lines() {
            let export = line.strip_prefix("export ").and_then(|export| export.split_once('='));
            self.exported.extend(export.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        stdout
    }
}

/// The two places a page may work in.
#[derive(Default)]
struct Story {
    dev: Option<Place>,
    serve: Option<Place>,
    /// What the last block printed; `None` if it was left out.
    printed: Option<String>,
}

impl Story {
    fn tell(page: &Page) -> Self {
        let mut story = Self::default();
        for block in page.blocks() {
            let what = format!("{} line {}", page.name, block.line);
            story.step(&block, &what);
        }
        story
    }

    fn dev(&mut self) -> &mut Place {
        self.dev.get_or_insert_with(Place::dev)
    }

    fn serve(&mut self) -> &mut Place {
        self.serve.get_or_insert_with(Place::for_serve)
    }

    fn step(&mut self, block: &Block, what: &str) {
        let needs = block.value("needs").unwrap_or_default().split(',');
        if let Some(tool) = needs.filter(|tool| !tool.is_empty()).find(|tool| !is_installed(tool)) {
            eprintln!("skipped {what}: no {tool} on this machine");
            self.printed = None;
        } else if let Some(file) = block.value("file") {
            let serves = block.value("place") == Some("serve");
            let place = if serves { self.serve() } else { self.dev() };
            place.write(file, &block.text);
        } else if block.has("consumer") {
            self.serve().start_consumer(&block.text);
        } else if block.has("dev") {
            let server = self.dev().server.as_ref().map(ServerProcess::pid);
            assert!(server.is_some(), "{what}");
        } else if block.has("serve") {
            let place = self.serve();
            let server = place.spawn(&format!("exec {}", block.text.trim()));
            server.addresses();
            place.server = Some(server);
        } else if block.has("output") {
            if let Some(printed) = &self.printed {
                expect_lines(&block.text, printed, what);
            }
        } else if block.has("run") || block.value("run").is_some() {
            let code = block.value("exit").map_or(0, |code| code.parse().unwrap());
            let place = if block.has("run") { self.dev() } else { self.serve() };
            self.printed = Some(match block.value("until") {
                Some(text) => place.run_until(&block.text, text, what),
                None => place.run(&block.text, code, what),
            });
        }
    }
}

fn is_installed(tool: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().unwrap();
    found.status.success()
}

/// The lines of `expected` are among those printed, in their order.
fn expect_lines(expected: &str, printed: &str, what: &str) {
    let mut rest = printed.lines();
    for line in expected.lines().filter(|line| !line.is_empty()) {
        let found = rest.any(|own| own.trim_end() == line.trim_end());
        assert!(found, "{what}: no line\n{line}\nin\n{printed}");
    }
}

#[test]
fn the_quick_start_does_what_it_says() {
    let readme = page("README.md");
    let mut story = Story::tell(&readme);
    let told = story.dev().server.as_ref().unwrap().log();
    let lines = readme.blocks().into_iter().filter(|block| block.has("run"));
    let lines: Vec<String> = lines.flat_map(|block| lines_of(&block)).collect();
    assert_eq!(lines.len(), 4, "the quick start is four lines");
    for line in lines {
        let line = line.strip_prefix("./target/release/oncebox ").unwrap();
        assert!(told.contains(&format!("oncebox {line}\n")), "dev does not print {line}:\n{told}");
    }
    let listed = story.dev().run("oncebox receipts list --json", 0, "what was kept");
    assert_eq!(listed.lines().count(), 2, "{listed}");
}

fn lines_of(block: &Block) -> Vec<String> {
    block.text.lines().map(str::to_owned).collect()
}

#[test]
fn getting_started_works() {
    let mut story = Story::tell(&page("docs/getting-started.md"));
    let listed = story.serve().run("oncebox receipts list --json", 0, "what was kept");
    assert_eq!(listed.lines().count(), 1, "{listed}");
}

#[test]
fn the_other_pages_work() {
    for page in crate::page::pages() {
        if page.name != "README.md" && page.name != "docs/getting-started.md" {
            Story::tell(&page);
        }
    }
}
