//! Memory lent between hosts: the idle memory daemon (`gleaner-memoryd`) on those that have some.

pub mod borrow;
pub mod nbd;
pub mod store;
