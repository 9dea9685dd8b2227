//! The scenarios that come with Gleaner, in every copy of it.

/// A scenario's file.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Name by which it is asked for.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(Shipped {
            name: $name,
            text: include_str!(concat!("../../scenarios/", $name, ".toml")),
        }),+]
    };
}

/// All of them.
pub const SHIPPED: [Shipped; 6] = shipped![
    "study",
    "policies",
    "forecast",
    "headroom",
    "idle",
    "slow-network"
];

impl Shipped {
    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        SHIPPED.into_iter().find(|shipped| shipped.name == name)
    }
}
