//! What every list takes, and how it ends.

use clap::Args;
use oncebox::limits::LIST_ROWS;

use crate::output::{count, notice};

/// How much of a list is shown, and in which form.
#[derive(Debug, Clone, Args)]
pub(crate) struct Listing {
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = LIST_ROWS)]
    limit: usize,

    /// All of them
    #[arg(long, conflicts_with = "limit")]
    all: bool,

    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

impl Listing {
    /// How many are asked for; none is no limit.
    pub(crate) fn most(&self) -> Option<usize> {
        (!self.all).then_some(self.limit)
    }

    /// Tells people how many were shown.
    pub(crate) fn tell(&self, shown: usize, may_have_more: bool, noun: &str) {
        if !self.json {
            let more = if may_have_more { "; there may be more: --all" } else { "" };
            notice(format!("{}{more}", count(shown, noun)));
        }
    }
}
