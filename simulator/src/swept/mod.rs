//! Parts of scenario files and of their results that are the same for every system with settings as a table: global
//! memory, and memory servers.

mod error;
pub(crate) mod file;
mod row;

pub use error::ScenarioError;
pub use row::{Spread, SweptRow};
