//! Bearer tokens.

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::acts::note;
use super::connection::{failure, in_transaction, run};
use super::rows::{time, time_if_any};
use crate::store::{Act, StoreError};
use crate::token::{Scope, Token, TokenId};

pub(super) fn create(
    connection: &mut Connection,
    token: &Token,
    act: &Act,
) -> Result<(), StoreError> {
    let scopes: Vec<String> = token.scopes.iter().map(Scope::to_string).collect();
    in_transaction(connection, |transaction| {
        let values = params![
            token.id.0,
            token.name,
            token.hash,
            scopes.join(" "),
            token.created_at.as_millisecond(),
            token.expires_at.map(Timestamp::as_millisecond),
            token.revoked_at.map(Timestamp::as_millisecond),
        ];
        run(transaction, include_str!("sql/insert_token.sql"), values)?;
        note(transaction, act, "token.create", &token.id.0)
    })
}

pub(super) fn list(connection: &Connection) -> Result<Vec<Token>, StoreError> {
    connection
        .prepare_cached(include_str!("sql/list_tokens.sql"))
        .and_then(|mut statement| statement.query_map([], token)?.collect())
        .map_err(failure)
}

pub(super) fn find(connection: &Connection, id: &TokenId) -> Result<Option<Token>, StoreError> {
    connection
        .prepare_cached(include_str!("sql/find_token.sql"))
        .and_then(|mut statement| statement.query_row(params![id.0], token).optional())
        .map_err(failure)
}

pub(super) fn revoke(
    connection: &mut Connection,
    id: &TokenId,
    act: &Act,
) -> Result<bool, StoreError> {
    in_transaction(connection, |transaction| {
        let values = params![id.0, act.at.as_millisecond()];
        if run(transaction, include_str!("sql/revoke_token.sql"), values)? == 0 {
            return Ok(false);
        }
        note(transaction, act, "token.revoke", &id.0)?;
        Ok(true)
    })
}

fn token(row: &Row<'_>) -> rusqlite::Result<Token> {
    let scopes: String = row.get(3)?;
    let scopes = scopes.split_whitespace().map(str::parse).collect::<Result<Vec<Scope>, _>>();
    Ok(Token {
        id: TokenId(row.get(0)?),
        name: row.get(1)?,
        hash: row.get(2)?,
        scopes: scopes.map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(3, Type::Text, Box::new(error))
        })?,
        created_at: time(row, 4)?,
        expires_at: time_if_any(row, 5)?,
        revoked_at: time_if_any(row, 6)?,
    })
}
