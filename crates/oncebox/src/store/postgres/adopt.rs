//! What the hosts of the URL are, and which an operator takes for the primary.

use super::connect::{self, Connector, no_connection};
use super::lookout::{Asked, ask_all};
use super::primary::{Place, Standing};
use super::{acts, limits};
use crate::store::{Act, HostState, HostView, StoreError};

/// How many hosts a URL names.
pub(in crate::store) fn host_count(url: &str) -> Result<usize, StoreError> {
    Ok(Connector::new(url)?.hosts().all().len())
}

/// Asks every host what it is.
pub(in crate::store) async fn hosts(url: &str) -> Result<Vec<HostView>, StoreError> {
    let view = |asked: Asked| {
        let state = match asked.standing {
            Ok(Standing::Primary(Place { system, timeline })) => {
                HostState::Primary { system: system.cast_unsigned(), timeline }
            }
            Ok(Standing::Standby(system)) => HostState::Standby { system: system.cast_unsigned() },
            Ok(Standing::Untold) => HostState::Untold,
            Err(reason) => HostState::Silent(reason),
        };
        HostView { host: asked.host, state }
    };
    Ok(ask_all(&Connector::new(url)?).await.into_iter().map(view).collect())
}

/// Writes the adoption into the audit on that host, where the nodes that refuse it look for it.
pub(in crate::store) async fn adopt(
    url: &str,
    host: &HostView,
    act: &Act,
) -> Result<String, StoreError> {
    let HostState::Primary { system, timeline } = host.state else {
        return Err(StoreError::unfit(
            format!("{} does not take writes", host.host),
            "Only a primary is adopted; `oncebox store hosts` shows them.",
        ));
    };
    let place = Place { system: system.cast_signed(), timeline };
    let connector = Connector::new(url)?.only(&host.host);
    let pool = connector.pool(1, connect::Use::General)?;
    let mut client = pool.get().await.map_err(|error| no_connection(&error))?;
    let subject = place.to_string();
    let noted = acts::note_alone(&mut client, act, "store.adopt", &subject);
    let noted = tokio::time::timeout(limits::POSTGRES_PATIENCE, noted).await;
    noted.map_err(|_| StoreError::UnknownOutcome("the connection says nothing".into()))??;
    Ok(subject)
}
