//! `oncebox effects settle`: what a person found out about an effect that is unknown.

use clap::{ArgGroup, Args};
use oncebox::effect::{Effect, EffectActed, EffectState, Verdict};
use oncebox::store::Store;
use oncebox_server::api::effects::json;

use super::{find, no_effect};
use crate::exit::Failure;
use crate::operator::{Operator, reason};
use crate::output::{count, escape, notice};

/// Say what came of an effect that is unknown
///
/// Deliveries that were held for it go on at once. What is said here is believed: look at the
/// other end first.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("verdict").required(true).args(["done", "not_done"]),
    after_help = "\
Examples:
  oncebox effects settle charge:in_456 --done --result '{\"charge\":\"ch_1\"}'
  oncebox effects settle charge:in_456 --done --evidence --reason 'the bank confirms it'
  oncebox effects settle charge:in_456 --not-done --reason 'the bank has no such charge'

Exit codes: 0 settled, 3 not found, 4 it is not unknown, or there is no evidence."
)]
pub(super) struct Settle {
    /// The key, as `oncebox effects list --state unknown` shows it
    key: String,

    /// It happened
    #[arg(long)]
    done: bool,

    /// It did not happen, and may be begun again
    #[arg(long)]
    not_done: bool,

    /// The result to record with it, as JSON
    #[arg(long, value_name = "JSON", value_parser = result, conflicts_with = "not_done")]
    result: Option<Recorded>,

    /// Record the result of the completion that came too late
    #[arg(long, conflicts_with_all = ["not_done", "result"])]
    evidence: bool,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    #[command(flatten)]
    operator: Operator,
}

/// A result as it is recorded; none of `null`.
#[derive(Clone, Debug)]
struct Recorded(Option<String>);

/// Reads a result; for clap.
fn result(text: &str) -> Result<Recorded, String> {
    json::result(text).map(Recorded).map_err(|bad| bad.to_string())
}

impl Settle {
    pub(super) async fn run(self, store: &dyn Store) -> Result<(), Failure> {
        let verdict = self.verdict(store).await?;
        let act = self.operator.act(self.reason.as_deref());
        let key = escape(&self.key);
        match store.settle_effect(&self.key, &verdict, &act).await? {
            EffectActed::Done { released } => {
                let word = if self.done { "done" } else { "not done" };
                notice(format!("settled {key} as {word}{}", go_on(released)));
                Ok(())
            }
            EffectActed::NotFound => Err(no_effect(&self.key)),
            EffectActed::Not(state) => {
                let failure = Failure::check(format!("effect `{key}` is {state}, not unknown"));
                Err(failure.hint(match state {
                    EffectState::Done => {
                        "it is known to have happened; `oncebox effects forget` lets it happen \
                         again, `oncebox held release` lets a delivery go that still waits for it"
                    }
                    _ => "a worker has it under a lease; wait until the lease is over",
                }))
            }
        }
    }

    async fn verdict(&self, store: &dyn Store) -> Result<Verdict, Failure> {
        if self.not_done {
            return Ok(Verdict::NotDone);
        }
        if !self.evidence {
            let result = self.result.as_ref().and_then(|Recorded(result)| result.clone());
            return Ok(Verdict::Done { result });
        }
        let Effect { evidence, .. } = find(store, &self.key).await?;
        let evidence = evidence.ok_or_else(|| {
            let key = escape(&self.key);
            Failure::check(format!("no late completion of `{key}` is recorded"))
                .hint("give the result by --result, or none")
        })?;
        Ok(Verdict::Done { result: evidence.result })
    }
}

/// How many deliveries go on, if any do.
pub(super) fn go_on(released: usize) -> String {
    match released {
        0 => String::new(),
        1 => "; 1 delivery goes on".to_owned(),
        many => format!("; {} go on", count(many, "delivery")),
    }
}
