//! The `oncebox` command.
//!
//! One file per command below `cmd`, each an argument struct with a `run`. What a command found
//! goes to stdout, everything else to stderr; how it ended is in [`exit`].

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

mod bench;
mod capture;
mod cmd;
mod context;
mod core_dumps;
mod exit;
mod ids;
mod listing;
mod operator;
mod output;
mod table;
mod when;

use exit::Failure;

/// The webhook inbox: every event verified, and recorded once.
#[derive(Debug, Parser)]
#[command(name = "oncebox", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Try it:
  oncebox dev                               a server with a demo source, nothing to configure
  oncebox send demo --duplicate 3           one signed event, sent three times
  oncebox receipts list                     what was kept

Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 a check did not hold,
69 store unavailable, 78 configuration.";

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// The configuration file [default: oncebox.toml, if there is one]
    #[arg(
        long,
        global = true,
        env = "ONCEBOX_CONFIG",
        value_name = "PATH",
        help_heading = "Global"
    )]
    pub(crate) config: Option<PathBuf>,
}

/// One variant per command, in the order `oncebox --help` lists them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Dev(cmd::dev::Dev),
    Serve(cmd::serve::Serve),
    Check(cmd::check::Check),
    Config(cmd::config::Config),
    Migrate(cmd::migrate::Migrate),
    Backup(cmd::backup::Backup),
    Send(cmd::send::Send),
    Verify(cmd::verify::Verify),
    Providers(cmd::providers::Providers),
    Sources(cmd::sources::Sources),
    Receipts(cmd::receipts::Receipts),
    Routes(cmd::routes::Routes),
    Deliveries(cmd::deliveries::Deliveries),
    Tail(cmd::tail::Tail),
    Held(cmd::held::Held),
    Dead(cmd::dead::Dead),
    Replay(cmd::replay::Replay),
    Replays(cmd::replays::Replays),
    Effects(cmd::effects::Effects),
    Outbox(cmd::outbox::Outbox),
    Audit(cmd::audit::Audit),
    Token(cmd::token::Token),
    Retention(cmd::retention::Retention),
    Store(cmd::store::Store),
    Healthcheck(cmd::healthcheck::Healthcheck),
    Bench(cmd::bench::Bench),
    #[command(hide = true)]
    BenchServer(bench::subject::BenchServer),
    Completions(cmd::completions::Completions),
    Man(cmd::man::Man),
}

async fn run(command: Command, global: &Global) -> Result<(), Failure> {
    match command {
        Command::Dev(command) => command.run(global).await,
        Command::Serve(command) => command.run(global).await,
        Command::Check(command) => command.run(global).await,
        Command::Config(command) => command.run(global).await,
        Command::Migrate(command) => command.run(global).await,
        Command::Backup(command) => command.run(global).await,
        Command::Send(command) => command.run(global).await,
        Command::Verify(command) => command.run(global).await,
        Command::Providers(command) => command.run(),
        Command::Sources(command) => command.run(global).await,
        Command::Receipts(command) => command.run(global).await,
        Command::Routes(command) => command.run(global).await,
        Command::Deliveries(command) => command.run(global).await,
        Command::Tail(command) => command.run(global).await,
        Command::Held(command) => command.run(global).await,
        Command::Dead(command) => command.run(global).await,
        Command::Replay(command) => command.run(global).await,
        Command::Replays(command) => command.run(global).await,
        Command::Effects(command) => command.run(global).await,
        Command::Outbox(command) => command.run(global).await,
        Command::Audit(command) => command.run(global).await,
        Command::Token(command) => command.run(global).await,
        Command::Retention(command) => command.run(global).await,
        Command::Store(command) => command.run(global).await,
        Command::Healthcheck(command) => command.run(global).await,
        Command::Bench(command) => command.run().await,
        Command::BenchServer(command) => command.run().await,
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(run(cli.command, &cli.global));
            runtime.shutdown_timeout(LAST_CALLS);
            ended
        }
        Err(error) => Err(Failure::from(error)),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => tell(failure),
    }
}

/// How long the end waits for a call that does not return: a read of a disk that is gone, a write
/// to a pipe nobody reads. Whoever restarts us is waiting for the exit code.
const LAST_CALLS: Duration = Duration::from_secs(2);

/// Tells the failure, if stderr takes it in time, and returns the exit code.
fn tell(failure: Failure) -> ExitCode {
    let code = failure.exit_code();
    let (done, told) = mpsc::channel();
    std::thread::spawn(move || {
        failure.print();
        let _ = done.send(());
    });
    let _ = told.recv_timeout(LAST_CALLS);
    code
}
