//! The scenarios that are compiled into Gleaner.

/// A scenario file that is compiled into Gleaner.
#[derive(Clone, Copy, Debug)]
pub struct ShippedScenario {
    /// Name by which a user selects the scenario.
    pub name: &'static str,
    /// Text of the file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(ShippedScenario {
            name: $name,
            text: include_str!(concat!("../../scenarios/", $name, ".toml")),
        }),+]
    };
}

/// All shipped scenarios.
pub const SHIPPED: [ShippedScenario; 6] = shipped![
    "study",
    "policies",
    "forecast",
    "headroom",
    "idle",
    "slow-network"
];

impl ShippedScenario {
    /// Shipped scenario with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        SHIPPED.into_iter().find(|shipped| shipped.name == name)
    }
}
