//! The scenarios of global memory that are compiled into Gleaner.

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../scenarios/", $name, ".toml")))),+]
    };
}

/// Names and texts of all shipped scenarios.
pub const SHIPPED: [(&str, &str); 7] = shipped![
    "gms-idle",
    "gms-skew",
    "gms-rules",
    "gms-assumed",
    "gms-clusters",
    "gms-nodes",
    "gms-commons",
];
