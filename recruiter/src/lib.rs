//! The recruiter (central manager): knows what every host may lend, places requests for leases and introduces clients to
//! memory servers. Its state is soft: rebuilt from announcements.

pub mod adapter;
