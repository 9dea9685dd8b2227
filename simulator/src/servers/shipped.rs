//! The scenarios of servers that are compiled into Gleaner.

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../scenarios/", $name, ".toml")))),+]
    };
}

/// Names and texts of all shipped scenarios.
pub const SHIPPED: [(&str, &str); 3] = shipped!["shutdown", "choice", "shared-lru"];
