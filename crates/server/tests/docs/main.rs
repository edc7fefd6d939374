//! What the documentation shows is run, and what it lists is complete.
//!
//! A word after the language of a fenced block says what it is; CONTRIBUTING.md has the list.

mod commands;
mod lists;
mod page;
mod story;
