//! Workload of a simulation: a program, or several recorded clients.

use crate::applications::Application;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Borrower of memory in a simulation: one program, or all recorded clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// A program, run repeatedly.
    Program(Application),
    /// The plan's recorded clients, all concurrent.
    Streams,
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => program.fmt(f),
            Self::Streams => f.write_str("streams"),
        }
    }
}
