//! Settings of global memory.

use super::SharingPolicy;
use super::file::ConfigFile;
use gleaner_daemon::config::{ConfigError, Origin};
use gleaner_policy::global::settings::Settings;
use std::ops::RangeInclusive;

/// Factors of ages that can be set, in quarters.
const BOOSTS: RangeInclusive<u32> = 1..=1000;

/// Settings of global memory under this policy. Keys of the policy `gms` are errors under others, unless they have
/// their defaults.
pub(super) fn settings(
    file: &ConfigFile,
    policy: SharingPolicy,
    origin: &Origin,
) -> Result<Settings, ConfigError> {
    let default = Settings::default();
    let settings = Settings {
        policy: policy.memory_policy(),
        victim: file.victim.unwrap_or(default.victim),
        swap: file.swap.unwrap_or(default.swap),
        boost_quarters: file.boost_quarters.unwrap_or(default.boost_quarters),
        ..default
    };
    let boost = settings.boost_quarters;
    if !BOOSTS.contains(&boost) {
        let what = format!(
            "{boost} is not within {} to {}: ages of blocks held for others are multiplied by it and divided by 4",
            BOOSTS.start(),
            BOOSTS.end()
        );
        return Err(origin.wrong("boost_quarters", what));
    }
    let changed = [
        ("victim", settings.victim != default.victim),
        ("swap", settings.swap != default.swap),
        ("boost_quarters", boost != default.boost_quarters),
    ];
    let mut changed = changed.into_iter().filter(|(_, is_changed)| *is_changed);
    match changed.next() {
        Some((key, _)) if policy != SharingPolicy::Gms => {
            let name = policy.name();
            let what = format!("only the policy gms has this setting, and the policy is {name}");
            Err(origin.wrong(key, what))
        }
        _ => Ok(settings),
    }
}
