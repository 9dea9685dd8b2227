//! Fleets shipped with Gleaner.

use super::{Fleet, SynthError};

/// A cluster shipped with Gleaner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Office machines and workstations as sold since 2020: invented.
    Modern,
    /// Cluster A of Acharya & Setia, Table 1: 29 hosts, calibrated to Tables 1 to 4.
    AcharyaSetiaA,
    /// Cluster B of Acharya & Setia: 23 hosts.
    AcharyaSetiaB,
    /// Both clusters together: 52 hosts, A's first.
    AcharyaSetia,
}

impl Preset {
    /// All presets that ship with Gleaner.
    pub const ALL: [Self; 4] = [
        Self::Modern,
        Self::AcharyaSetiaA,
        Self::AcharyaSetiaB,
        Self::AcharyaSetia,
    ];

    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::AcharyaSetiaA => "acharya-setia-a",
            Self::AcharyaSetiaB => "acharya-setia-b",
            Self::AcharyaSetia => "acharya-setia",
        }
    }

    /// Name of the preset's cluster in its fleet.
    #[must_use]
    pub const fn cluster(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::AcharyaSetiaA => "a",
            Self::AcharyaSetiaB => "b",
            Self::AcharyaSetia => "both",
        }
    }

    /// Text of the preset's fleet file.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Modern => include_str!("../../presets/modern.toml"),
            _ => include_str!("../../presets/acharya-setia.toml"),
        }
    }

    /// Fleet of the preset.
    ///
    /// # Errors
    /// [`SynthError::Fleet`]; a test ensures that no preset returns it.
    pub fn fleet(self) -> Result<Fleet, SynthError> {
        Fleet::parse(self.text(), self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_fleets() {
        for preset in Preset::ALL {
            let fleet = preset.fleet().unwrap();
            assert!(fleet.cluster(Some(preset.cluster())).is_ok());
        }
        let hosts = |preset: Preset| {
            let fleet = preset.fleet().unwrap();
            fleet.cluster(Some(preset.cluster())).unwrap().hosts_count()
        };
        assert_eq!(hosts(Preset::AcharyaSetiaA), 29);
        assert_eq!(hosts(Preset::AcharyaSetiaB), 23);
        assert_eq!(hosts(Preset::AcharyaSetia), 52);
    }

    #[test]
    fn every_key_of_a_fleet_is_explained() {
        fn collect(value: &toml::Value, keys: &mut Vec<String>) {
            match value {
                toml::Value::Table(table) => {
                    for (key, value) in table {
                        keys.push(key.clone());
                        collect(value, keys);
                    }
                }
                toml::Value::Array(values) => values.iter().for_each(|v| collect(v, keys)),
                _ => {}
            }
        }
        let docs = include_str!("../../../docs/synth.md");
        let mut keys = vec!["first_host".to_owned()];
        for preset in Preset::ALL {
            collect(&toml::from_str(preset.text()).unwrap(), &mut keys);
        }
        assert!(keys.len() > 200);
        for key in keys {
            let is_there = ["`", "`[", "`[["]
                .iter()
                .any(|open| docs.contains(&format!("{open}{key}")));
            assert!(is_there, "docs/synth.md does not explain {key}");
        }
    }
}
