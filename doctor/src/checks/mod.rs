//! Checks of single things. In each check, `read` collects facts, and the pure function `judge` turns them
//! into findings.

pub(super) mod certificate;
pub(super) mod clerk;
pub(super) mod clock;
pub(super) mod collector;
pub(super) mod commons;
pub(super) mod configuration;
pub(super) mod disk;
pub(super) mod folder;
pub(super) mod kernel;
pub(super) mod lending;
pub(super) mod limits;
pub(super) mod network;
pub(super) mod program;
pub(super) mod recruiter;
pub(super) mod socket;
pub(super) mod trace;
pub(super) mod unit;
