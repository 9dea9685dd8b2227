//! Terminal output that several commands share: aligned tables ([`table()`]) and progress bars ([`bar`]).
//!
//! Rooms, from the top; each uses only those after it: `progress`, `table`.

mod progress;
mod table;

pub use progress::{ProgressBar, bar};
pub use table::{Table, table};
