//! Memory lent between hosts: the idle memory daemon (`gleaner-memoryd`) on those that have some.

pub mod nbd;
pub mod store;
