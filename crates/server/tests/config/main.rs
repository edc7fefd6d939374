//! The configuration: what it may say, and how it says what is wrong.

use oncebox_server::config::{Config, Environment, Problem};

mod errors;
mod example;
mod routes;
mod sources;

pub(crate) fn parse(text: &str) -> Result<Config, Vec<String>> {
    parse_with(text, Environment::default())
}

pub(crate) fn parse_with(text: &str, environment: Environment) -> Result<Config, Vec<String>> {
    Config::parse("oncebox.toml", text, environment).map_err(|error| {
        let told = |problem: &Problem| {
            let place = match problem.line_and_column() {
                Some((line, column)) => format!("{line}:{column} "),
                None => String::new(),
            };
            let hint = match problem.hint() {
                "" => String::new(),
                hint => format!(" | {hint}"),
            };
            format!("{place}{}{hint}", problem.message())
        };
        error.problems().iter().map(told).collect()
    })
}

pub(crate) fn errors(text: &str) -> String {
    parse(text).expect_err("the configuration is wrong").join("\n")
}

pub(crate) const EXAMPLE: &str = include_str!("../../../../oncebox.example.toml");
