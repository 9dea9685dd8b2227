//! Object stores: addresses with their options, connections, and datasets read from them.
//!
//! [`open`] opens a dataset wherever it is. The collector, which publishes datasets, uses [`Target`]. Credentials
//! come from the environment (`AWS_ACCESS_KEY_ID` and so on), never from options.
//!
//! Rooms, from the top; each uses only those after it: `open`, `bucket`, `target`, `client`, `causes`.

mod bucket;
mod causes;
mod client;
mod open;
mod target;

pub use causes::in_full;
pub use open::{OpenError, open, open_with};
pub use target::{OptionError, Target, TargetError, UrlError};
