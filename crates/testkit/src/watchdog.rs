//! Ends processes and removes folders, whatever ends the test process.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Reads the process to stop from a pipe that only the test process holds open. The pipe closes
/// when that process ends, even by SIGKILL, and no destructor has to run for it.
const AWAIT_END: &str = r#"
pid=
while read -r line; do pid=$line; done
"#;

const KILL: &str = r#"
if [ -n "$pid" ]; then kill -KILL "$pid"; fi
"#;

/// Waits for the pid file, too: the dead server may stay a zombie if nobody reaps it.
const STOP_CLUSTER: &str = r#"
if [ -n "$pid" ] && kill -QUIT "$pid"; then
    kill -CONT "$pid"
    tries=0
    while [ "$tries" -lt 100 ] && kill -0 "$pid" && [ -e "$1/data/postmaster.pid" ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    [ "$tries" -lt 100 ] || kill -KILL "$pid"
fi
tries=0
while [ "$tries" -lt 100 ] && ! rm -rf "$1"; do
    sleep 0.1
    tries=$((tries + 1))
done
"#;

/// A shell that outlives the test process for a moment.
#[derive(Debug)]
pub(crate) struct Watchdog {
    shell: Child,
    /// Taken when the watchdog is let go.
    pipe: Option<ChildStdin>,
}

impl Watchdog {
    /// Kills the process it watches.
    pub(crate) fn killing() -> Self {
        Self::run(KILL, Path::new("/"))
    }

    /// Stops the PostgreSQL it watches, and removes its `folder`.
    pub(crate) fn over_cluster(folder: &Path) -> Self {
        Self::run(STOP_CLUSTER, folder)
    }

    fn run(end: &str, argument: &Path) -> Self {
        let mut shell = Command::new("sh")
            .args(["-c", &format!("{AWAIT_END}{end}"), "watchdog"])
            .arg(argument)
            .current_dir("/")
            // Out of the way of a Ctrl-C or a kill aimed at the whole test run.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("start `sh` to clean up after the test");
        let pipe = shell.stdin.take();
        Self { shell, pipe }
    }

    /// Names the process to end, or none once it has been reaped.
    pub(crate) fn watch(&mut self, process: Option<u32>) {
        let line = process.map(|pid| pid.to_string()).unwrap_or_default();
        let pipe = self.pipe.as_mut().expect("the pipe is open until the drop");
        writeln!(pipe, "{line}").expect("the watchdog is alive");
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // A folder that could not be removed is no reason to fail a test.
        let _ = self.shell.wait();
    }
}
