//! `oncebox completions`: what a shell needs to complete our commands.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::exit::Failure;

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox completions bash > /etc/bash_completion.d/oncebox
  oncebox completions zsh > \"${fpath[1]}/_oncebox\"
  oncebox completions fish > ~/.config/fish/completions/oncebox.fish")]
pub(crate) struct Completions {
    /// The shell to write for
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        // The generator panics on a closed pipe, so it writes into memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "oncebox", &mut script);
        io::stdout().lock().write_all(&script)?;
        Ok(())
    }
}
