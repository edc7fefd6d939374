//! Bearer tokens.

use deadpool_postgres::Object;
use tokio_postgres::Row;

use super::acts::note;
use super::connect::{execute, failure, query};
use super::read::odd_row;
use crate::store::{Act, StoreError};
use crate::token::{Scope, Token, TokenId};

pub(super) async fn create(
    client: &mut Object,
    token: &Token,
    act: &Act,
) -> Result<(), StoreError> {
    let transaction = client.transaction().await.map_err(failure)?;
    let scopes: Vec<String> = token.scopes.iter().map(Scope::to_string).collect();
    execute(
        &transaction,
        include_str!("sql/insert_token.sql"),
        &[
            &token.id.0,
            &token.name,
            &&token.hash[..],
            &scopes.join(" "),
            &token.created_at,
            &token.expires_at,
            &token.revoked_at,
        ],
    )
    .await?;
    note(&transaction, act, "token.create", &token.id.0).await?;
    transaction.commit().await.map_err(failure)
}

pub(super) async fn list(client: &Object) -> Result<Vec<Token>, StoreError> {
    let rows = query(client, include_str!("sql/list_tokens.sql"), &[]).await?;
    rows.iter().map(token).collect()
}

pub(super) async fn find(client: &Object, id: &TokenId) -> Result<Option<Token>, StoreError> {
    let rows = query(client, include_str!("sql/find_token.sql"), &[&id.0]).await?;
    rows.first().map(token).transpose()
}

pub(super) async fn revoke(
    client: &mut Object,
    id: &TokenId,
    act: &Act,
) -> Result<bool, StoreError> {
    let transaction = client.transaction().await.map_err(failure)?;
    let sql = include_str!("sql/revoke_token.sql");
    if execute(&transaction, sql, &[&id.0, &act.at]).await? == 0 {
        return Ok(false);
    }
    note(&transaction, act, "token.revoke", &id.0).await?;
    transaction.commit().await.map_err(failure)?;
    Ok(true)
}

fn token(row: &Row) -> Result<Token, StoreError> {
    let hash: Vec<u8> = row.get(2);
    let scopes: &str = row.get(3);
    let scopes: Result<Vec<Scope>, _> = scopes.split_whitespace().map(str::parse).collect();
    Ok(Token {
        id: TokenId(row.get(0)),
        name: row.get(1),
        hash: hash.try_into().map_err(|_| odd_row("hash"))?,
        scopes: scopes.map_err(|_| odd_row("scopes"))?,
        created_at: row.get(4),
        expires_at: row.get(5),
        revoked_at: row.get(6),
    })
}
