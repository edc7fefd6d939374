//! The front door in somebody else's router: under a path of its own, and with or without the
//! address of the sender.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::bed::{self, Answer, Bed, Place, SOURCES, wire};

/// A service that has the front door below `/hooks` and what operators ask for below `/ops`.
fn app(bed: &Bed) -> Router {
    Router::new()
        .route("/", get(|| async { "a shop" }))
        .nest("/hooks", bed.server.router())
        .nest("/ops", bed.server.admin_router())
}

/// Serves an app for the rest of the test.
async fn serve(app: Router, tells_peers: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        match tells_peers {
            true => {
                let app = app.into_make_service_with_connect_info::<SocketAddr>();
                axum::serve(listener, app).await
            }
            false => axum::serve(listener, app).await,
        }
    });
    address
}

#[tokio::test]
async fn events_come_in_beside_the_routes_of_a_service() {
    for place in [Place::sqlite(), Place::postgres().await] {
        let bed = Bed::on_place(place, SOURCES).await;
        let address = serve(app(&bed), true).await;
        let send = async |bytes: &[u8]| Answer::of(address, bytes).await;
        let event = bed.event("evt_1");
        assert_eq!(send(&wire("/hooks/in/stripe", &event)).await.status, 202);
        assert_eq!(send(&wire("/hooks/in/stripe", &event)).await.status, 200);
        let mut forged = bed.event("evt_2");
        forged.body.push(b' ');
        assert_eq!(send(&wire("/hooks/in/stripe", &forged)).await.status, 401);
        assert_eq!(send(&wire("/hooks/in/nobody", &event)).await.status, 404);
        assert_eq!(bed::get(address, "/").await.body, "a shop");
        assert_eq!(bed::get(address, "/ops/readyz").await.status, 200);
        let stored: Vec<_> = bed.stored().await.into_iter().map(|event| event.event_id).collect();
        assert_eq!(stored, ["evt_1"]);
        bed.server.stop().await;
    }
}

/// Without addresses all senders count as one. Their forgeries keep no event out.
#[tokio::test]
async fn without_addresses_nobody_genuine_is_refused() {
    let bed = Bed::start().await;
    let address = serve(app(&bed), false).await;
    let mut forged = bed.event("evt_1");
    forged.body.push(b' ');
    let forged = wire("/hooks/in/stripe", &forged);
    let mut refused = Answer::of(address, &forged).await;
    for _ in 0..100 {
        refused = Answer::of(address, &forged).await;
    }
    assert_eq!(refused.status, 429);
    let genuine = wire("/hooks/in/stripe", &bed.event("evt_1"));
    assert_eq!(Answer::of(address, &genuine).await.status, 202);
    bed.server.stop().await;
}
