//! The shop itself: what it keeps, and its own routes. Nothing of Oncebox here.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use oncebox::store::SqliteStore;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

pub(crate) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS orders (
        id TEXT PRIMARY KEY,
        sku TEXT NOT NULL,
        quantity INTEGER NOT NULL,
        state TEXT NOT NULL DEFAULT 'open'
    ) STRICT;
    CREATE TABLE IF NOT EXISTS stock (sku TEXT PRIMARY KEY, left INTEGER NOT NULL) STRICT;
    INSERT INTO stock VALUES ('mug', 1000) ON CONFLICT DO NOTHING;
";

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    id: String,
    sku: String,
    quantity: i64,
    #[serde(default)]
    state: String,
}

type Shop = State<Arc<SqliteStore>>;

/// Places an order.
pub(crate) async fn order(State(shop): Shop, Json(order): Json<Order>) -> StatusCode {
    let sql = "INSERT INTO orders (id, sku, quantity) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let placed =
        shop.with(move |db| db.execute(sql, params![order.id, order.sku, order.quantity])).await;
    match placed {
        Ok(Ok(_)) => StatusCode::CREATED,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Shows an order.
pub(crate) async fn show(
    State(shop): Shop,
    Path(id): Path<String>,
) -> Result<Json<Order>, StatusCode> {
    let sql = "SELECT id, sku, quantity, state FROM orders WHERE id = ?1";
    let found = shop.with(move |db| {
        db.query_row(sql, [id], |row| {
            let (id, sku, quantity) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Order { id, sku, quantity, state: row.get(3)? })
        })
        .optional()
    });
    match found.await {
        Ok(Ok(Some(order))) => Ok(Json(order)),
        Ok(Ok(None)) => Err(StatusCode::NOT_FOUND),
        _ => Err(StatusCode::SERVICE_UNAVAILABLE),
    }
}
