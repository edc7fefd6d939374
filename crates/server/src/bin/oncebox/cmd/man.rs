//! `oncebox man`: the manual pages.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, CommandFactory};

use crate::Cli;
use crate::exit::Failure;

/// Print the manual page, or write one page per command
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox man | man -l -
  oncebox man --dir /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// Write one page per command into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.dir {
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(Cli::command()).render(&mut page)?;
                io::stdout().lock().write_all(&page)?;
            }
            Some(dir) => {
                fs::create_dir_all(&dir)
                    .and_then(|()| clap_mangen::generate_to(Cli::command(), &dir))
                    .map_err(|error| {
                        Failure::failed(format!("cannot write to {}: {error}", dir.display()))
                    })?;
            }
        }
        Ok(())
    }
}
