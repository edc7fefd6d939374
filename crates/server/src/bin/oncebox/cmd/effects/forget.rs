//! `oncebox effects forget`: the only way to have an effect twice.

use clap::Args;
use oncebox::effect::{EffectActed, EffectKind};
use oncebox::store::Store;

use super::settle::go_on;
use super::{find, no_effect};
use crate::exit::Failure;
use crate::operator::{Operator, confirm, reason};
use crate::output::{escape, notice};

/// Forget an effect, so that it may happen again
///
/// Nothing is undone by it: what was done stays done, and a message that was sent is not taken
/// back. The next delivery that comes to do it does it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox effects forget receipt-email:in_456 --reason 'the mail was lost, send it again'

Exit codes: 0 forgotten, 1 not confirmed, 3 not found, 4 a worker has it.")]
pub(super) struct Forget {
    /// The key, as `oncebox effects list` shows it
    key: String,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Why, for the audit
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,

    #[command(flatten)]
    operator: Operator,
}

impl Forget {
    pub(super) async fn run(self, store: &dyn Store) -> Result<(), Failure> {
        let effect = find(store, &self.key).await?;
        let key = escape(&self.key);
        let again = match effect.kind {
            EffectKind::Message => "a message may be sent under this key again",
            EffectKind::Once | EffectKind::Step => "it may happen again",
        };
        confirm(self.yes, &format!("Forget `{key}`, which is {}: {again}?", effect.state))?;
        let act = self.operator.act(Some(&self.reason));
        match store.forget_effect(&self.key, &act).await? {
            EffectActed::Done { released } => {
                notice(format!("forgot {key}; {again}{}", go_on(released)));
                Ok(())
            }
            EffectActed::NotFound => Err(no_effect(&self.key)),
            EffectActed::Not(state) => Err(Failure::check(format!("effect `{key}` is {state}"))
                .hint("a worker has it under a lease; wait until the lease is over")),
        }
    }
}
