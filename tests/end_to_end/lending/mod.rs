//! Memory lent between real daemons: recruiters, memory servers, and agents that the test controls.

mod agent;
mod borrowed;
mod chaos;
mod clerk;
mod client;
mod cluster;
mod hostile;
#[path = "../../../paging/tests/paging/load.rs"]
mod load;
mod lost;
mod outage;
mod own;
mod pages;
mod partition;
mod programs;
mod revoked;
mod severed;
mod upgraded;
mod whole;
