//! Macro for the table of policies, and everything that is derived from the table.

use super::{Eviction, Policy};
use std::fmt;
use std::str::FromStr;

/// Makes policies known to the cache replay, the simulator, the command line and the clerk: one row per
/// policy.
///
/// Each row has documentation, the name in configurations, and the type with its module; the type's name is
/// also the policy's.
macro_rules! policies {
    ($($(#[$doc:meta])* $name:literal => $module:ident::$policy:ident;)*) => {
        $(pub use $module::$policy;)*

        /// Policies of eviction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Policy {
            $($(#[$doc])* $policy,)*
        }

        impl Policy {
            /// All policies, in the order of the table.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$policy),*];

            /// Name in configurations.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$policy => $name,)*
                }
            }

            /// Calls `visitor` with the type of this policy's order.
            pub fn visit<V: Visitor>(self, visitor: V) -> V::Output {
                match self {
                    $(Self::$policy => visitor.visit::<$policy>(),)*
                }
            }
        }

        /// Order of pages by a policy chosen at run time. A call costs one branch more than a call of the
        /// policy's own type.
        #[derive(Clone, Debug)]
        pub enum Order {
            $($(#[$doc])* $policy($policy),)*
        }

        impl Order {
            /// Empty order for page numbers below `pages`, at most 2³² − 2.
            #[must_use]
            pub fn new(policy: Policy, pages: u32) -> Self {
                match policy {
                    $(Policy::$policy => Self::$policy(Eviction::of(pages)),)*
                }
            }

            /// Calls [`Eviction::grow`] of the policy.
            pub fn grow(&mut self, pages: u32) {
                match self {
                    $(Self::$policy(order) => Eviction::grow(order, pages),)*
                }
            }

            /// Calls [`Eviction::contains`] of the policy.
            #[must_use]
            #[inline]
            pub fn contains(&self, page: u32) -> bool {
                match self {
                    $(Self::$policy(order) => Eviction::contains(order, page),)*
                }
            }

            /// Calls [`Eviction::enter`] of the policy.
            #[inline]
            pub fn enter(&mut self, page: u32) {
                match self {
                    $(Self::$policy(order) => order.enter(page),)*
                }
            }

            /// Calls [`Eviction::used`] of the policy.
            #[inline]
            pub fn used(&mut self, page: u32) {
                match self {
                    $(Self::$policy(order) => order.used(page),)*
                }
            }

            /// Calls [`Eviction::evict`] of the policy.
            #[inline]
            pub fn evict(
                &mut self,
                most_asked: usize,
                may_leave: impl FnMut(u32) -> bool,
            ) -> Option<u32> {
                match self {
                    $(Self::$policy(order) => order.evict(most_asked, may_leave),)*
                }
            }

            /// Calls [`Eviction::leave`] of the policy.
            #[inline]
            pub fn leave(&mut self, page: u32) {
                match self {
                    $(Self::$policy(order) => order.leave(page),)*
                }
            }
        }
    };
}
pub(super) use policies;

/// Code that is compiled separately for every policy's order, so that its calls cost no branch.
pub trait Visitor {
    /// Result of [`Policy::visit`].
    type Output;

    /// Does the work with orders of type `E`.
    fn visit<E: Eviction + 'static>(self) -> Self::Output;
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error: no policy has that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy(pub String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Policy::ALL.map(Policy::name).join(", ");
        write!(
            f,
            "there is no eviction {:?}: choose one of {names}",
            self.0
        )
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let found = Self::ALL.into_iter().find(|policy| policy.name() == name);
        found.ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for policy in Policy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        let error = "LRU".parse::<Policy>().unwrap_err().to_string();
        assert!(error.contains("lru, fifo, first-in"), "{error}");
    }
}
