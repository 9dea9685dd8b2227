//! The host's owner: absences, and what lending did cost or would cost the owner.

pub(crate) mod idle;
pub(crate) mod live_file_cache;
pub(crate) mod memory_context;
pub(crate) mod owner_cost;
pub(crate) mod owner_period_lengths;
pub(crate) mod quota;
pub(crate) mod reclaims_by_hour;
pub(crate) mod returns;
