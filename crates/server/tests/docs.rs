//! What the documentation shows is run, and what it lists is complete.
//!
//! A word after the language of a fenced block says what it is; CONTRIBUTING.md has the list.

#[path = "docs/commands.rs"]
mod commands;
#[path = "docs/lists.rs"]
mod lists;
#[path = "docs/page.rs"]
mod page;
#[path = "docs/story.rs"]
mod story;
