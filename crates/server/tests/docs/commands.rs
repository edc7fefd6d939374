//! Commands and flags that the documentation names exist.

use std::collections::HashMap;
use std::process::Command;

use crate::page::{pages, spans};

/// The help of commands, asked once each.
#[derive(Default)]
struct Helps(HashMap<Vec<String>, String>);

impl Helps {
    fn of(&mut self, path: &[String]) -> &str {
        self.0.entry(path.to_vec()).or_insert_with(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_oncebox"));
            let output = command.args(path).arg("--help").env("NO_COLOR", "1").output().unwrap();
            assert!(output.status.success(), "oncebox {} --help", path.join(" "));
            String::from_utf8(output.stdout).unwrap()
        })
    }

    /// The commands below the one at `path`.
    fn below(&mut self, path: &[String]) -> Vec<String> {
        let help = self.of(path);
        let Some((_, list)) = help.split_once("\nCommands:\n") else { return Vec::new() };
        let words = list.lines().take_while(|line| line.starts_with("  "));
        words.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    }

    /// What is wrong with a command as it is written.
    fn check(&mut self, written: &str) -> Result<(), String> {
        let ends = ["|", ">", "<", "&&", ";"];
        let mut words =
            written.split_whitespace().take_while(|word| !ends.contains(word)).peekable();
        let mut path = Vec::new();
        loop {
            let below = self.below(&path);
            match words.peek() {
                Some(word) if below.iter().any(|name| name == word) => {
                    path.push((*word).to_owned());
                    words.next();
                }
                Some(word) if !below.is_empty() && !word.starts_with('-') => {
                    return Err(format!("`{word}` is no command"));
                }
                _ => break,
            }
        }
        let help = self.of(&path).to_owned();
        let known = |flag: &str| {
            help.split(|c: char| c.is_whitespace() || c == ',').any(|word| word == flag)
        };
        for flag in words.filter(|word| word.starts_with("--")) {
            let flag = flag.split('=').next().unwrap();
            if !known(flag) {
                return Err(format!("no flag {flag}"));
            }
        }
        Ok(())
    }
}

/// What stands after the name of the program, however it is called.
fn after_program(line: &str) -> Option<&str> {
    let line = line.trim();
    line.strip_prefix("oncebox ").or_else(|| line.strip_prefix("cargo run --release -- "))
}

#[test]
fn commands_and_flags_exist() {
    let mut helps = Helps::default();
    let mut checked = 0;
    for page in pages() {
        let mut lines = spans(&page.prose());
        for block in page.blocks().into_iter().filter(|block| block.language == "sh") {
            lines.extend(block.text.lines().map(str::to_owned));
        }
        for line in &lines {
            let Some(command) = after_program(line) else { continue };
            let fit = helps.check(command);
            fit.unwrap_or_else(|problem| panic!("{}: `{line}`: {problem}", page.name));
            checked += 1;
        }
    }
    assert!(checked > 40, "only {checked} commands were found");
}

#[test]
fn a_command_that_does_not_exist_would_be_found() {
    let mut helps = Helps::default();
    assert_eq!(helps.check("receipts list --source a --all"), Ok(()));
    assert_eq!(helps.check("receipts"), Ok(()));
    assert!(helps.check("receipts lst").is_err());
    assert!(helps.check("receipts list --soruce a").is_err());
    assert!(helps.check("replay --all").is_err());
}
