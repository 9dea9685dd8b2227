//! The forecast table, made from the findings, and the probabilities that it holds.

use super::{AHEAD, AHEAD_S, Bins, State, TABLE_VERSION, lost, slot};
use gleaner_schemas::findings::{Findings, ForecastCell, ForecastHabit, ForecastWeight, Scope};
use std::collections::BTreeMap;

/// The regions that a table knows: by size, or by share of physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    /// In bytes.
    Bytes(i64),
    /// In millionths of physical memory.
    Millionths(i64),
}

/// Which forecast is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question<'a> {
    /// Host id; one that the table does not know has the habits of all.
    pub host: &'a str,
    /// Whether it shall stay idle as well, as it is now.
    pub scope: Scope,
    /// The region as the table names it; in bytes, the next larger of the table's, else its largest.
    pub region: Region,
    /// What state it is in.
    pub state: State,
    /// Hour of the week in the fleet's time zone: 0 is Monday's first.
    pub hour_of_week: u8,
    /// How far ahead; between two of the table's, the farther one.
    pub ahead_s: i64,
}

/// Probabilities by how far ahead they look.
type Ahead = [Option<f64>; AHEAD];

/// All of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    regions: BTreeMap<(bool, Region), OfRegion>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct OfRegion {
    /// Probability to be lost; absent bins stand for any.
    cells: BTreeMap<[Option<u8>; 3], Ahead>,
    /// By host and slot.
    habits: BTreeMap<String, BTreeMap<Option<u8>, Ahead>>,
    habit_weights: Ahead,
}

impl Region {
    /// As records name it; `None` where they name none.
    #[must_use]
    pub fn of(region_bytes: Option<i64>, region_share: Option<f64>) -> Option<Self> {
        let millionths = |share: f64| Self::Millionths((share * 1e6).round() as i64);
        region_share
            .map(millionths)
            .or(region_bytes.map(Self::Bytes))
    }
}

impl Table {
    /// That of an analysis; `None` where there is none, or one of another version.
    #[must_use]
    pub fn of(findings: &Findings) -> Option<Self> {
        let size = findings.forecast_table_size.first()?;
        (size.table_version == TABLE_VERSION).then(|| {
            Self::new(
                &findings.forecast_table,
                &findings.forecast_habits,
                &findings.forecast_weights,
            )
        })
    }

    /// From the findings' three lists. Records that name no region or look no known time ahead are left out.
    #[must_use]
    pub fn new(
        cells: &[ForecastCell],
        habits: &[ForecastHabit],
        weights: &[ForecastWeight],
    ) -> Self {
        let mut table = Self::default();
        for cell in cells {
            let bin = |bin: Option<i64>| bin.and_then(|b| u8::try_from(b).ok());
            let bins = [bin(cell.age_bin), bin(cell.margin_bin), bin(cell.low_bin)];
            let region = table.region(cell.scope, cell.region_bytes, cell.region_share);
            if let (Some(region), Some(ahead)) = (region, ahead_index(cell.ahead_s)) {
                region.cells.entry(bins).or_default()[ahead] = Some(1.0 - cell.probability);
            }
        }
        for habit in habits {
            let region = table.region(habit.scope, habit.region_bytes, habit.region_share);
            if let Some(region) = region {
                let slot = habit.slot.and_then(|s| u8::try_from(s).ok());
                let of_host = region.habits.entry(habit.host.clone()).or_default();
                of_host.insert(slot, habit.lost());
            }
        }
        for weight in weights {
            let region = table.region(weight.scope, weight.region_bytes, weight.region_share);
            if let (Some(region), Some(ahead)) = (region, ahead_index(weight.ahead_s)) {
                region.habit_weights[ahead] = Some(weight.habit_weight);
            }
        }
        table
    }

    fn region(
        &mut self,
        scope: Scope,
        region_bytes: Option<i64>,
        region_share: Option<f64>,
    ) -> Option<&mut OfRegion> {
        let key = (
            scope == Scope::Idle,
            Region::of(region_bytes, region_share)?,
        );
        Some(self.regions.entry(key).or_default())
    }

    /// The probability that a region stays available throughout; `None` where it is not available now, or where
    /// nothing was learnt about the like.
    #[must_use]
    pub fn probability(&self, question: &Question<'_>) -> Option<f64> {
        let ahead = AHEAD_S.iter().position(|s| *s >= question.ahead_s)?;
        let bins = question.state.bins()?;
        let region = self.nearest(question.scope, question.region)?;
        let state = region.state(bins, ahead)?;
        let habit = region.habit(question.host, slot(question.hour_of_week), ahead);
        let lost = match (habit, region.habit_weights[ahead]) {
            (Some(habit), Some(weight)) => lost(habit, state, weight),
            _ => state,
        };
        Some(1.0 - lost)
    }

    fn nearest(&self, scope: Scope, region: Region) -> Option<&OfRegion> {
        let is_idle = scope == Scope::Idle;
        if let Region::Millionths(_) = region {
            return self.regions.get(&(is_idle, region));
        }
        let larger = (is_idle, region)..=(is_idle, Region::Bytes(i64::MAX));
        let smaller = (is_idle, Region::Bytes(0))..(is_idle, region);
        let mut found = self.regions.range(larger);
        let found = found.next().or_else(|| self.regions.range(smaller).last());
        found.map(|(_, of_region)| of_region)
    }
}

impl OfRegion {
    /// Of the finest cell that the table has.
    fn state(&self, bins: Bins, ahead: usize) -> Option<f64> {
        let (age, margin, low) = (Some(bins.age), Some(bins.margin), Some(bins.low));
        let finest_first = [
            [age, margin, low],
            [age, margin, None],
            [age, None, None],
            [None; 3],
        ];
        let mut found = finest_first.iter().filter_map(|key| self.cells.get(key));
        found.find_map(|cell| cell[ahead])
    }

    /// Of the time of the week, else of any; a host without habits has those of all.
    fn habit(&self, host: &str, slot: u8, ahead: usize) -> Option<f64> {
        let of_host = self.habits.get(host);
        let at = |slot| of_host?.get(&slot).and_then(|lost: &Ahead| lost[ahead]);
        let of_all = || self.cells.get(&[None; 3]).and_then(|cell| cell[ahead]);
        at(Some(slot)).or_else(|| at(None)).or_else(of_all)
    }
}

/// The index of a time ahead in [`AHEAD_S`].
fn ahead_index(ahead_s: i64) -> Option<usize> {
    AHEAD_S.iter().position(|s| *s == ahead_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::findings::ForecastTableSize;

    const GIB: i64 = 1 << 30;

    fn cell(bins: [Option<i64>; 3], ahead_s: i64, probability: f64) -> ForecastCell {
        ForecastCell {
            scope: Scope::All,
            region_bytes: Some(GIB),
            region_share: None,
            age_bin: bins[0],
            margin_bin: bins[1],
            low_bin: bins[2],
            ahead_s,
            probability,
            instants: 1,
        }
    }

    fn habit(host: &str, slot: Option<i64>, hour: f64) -> ForecastHabit {
        ForecastHabit {
            host: host.into(),
            slot,
            region_bytes: Some(GIB),
            lost_in_1_h: Some(hour),
            ..ForecastHabit::default()
        }
    }

    fn table() -> Table {
        let cells = [
            cell([None; 3], 3600, 0.5),
            cell([Some(0), None, None], 3600, 0.6),
            cell([Some(0), Some(4), None], 3600, 0.7),
            cell([Some(0), Some(4), Some(2)], 3600, 0.8),
            cell([None; 3], 600, 0.99),
        ];
        let habits = [habit("a", None, 0.4), habit("a", Some(2), 0.6)];
        let weight = ForecastWeight {
            scope: Scope::All,
            region_bytes: Some(GIB),
            region_share: None,
            ahead_s: 3600,
            habit_weight: 0.5,
        };
        Table::new(&cells, &habits, &[weight])
    }

    fn question(host: &str, available_gib: i64, low_gib: i64) -> Question<'_> {
        Question {
            host,
            scope: Scope::All,
            region: Region::Bytes(GIB),
            state: State {
                age_s: 0,
                available_bytes: available_gib * GIB,
                low_bytes: low_gib * GIB,
                region_bytes: GIB,
            },
            hour_of_week: 9,
            ahead_s: 3600,
        }
    }

    fn is(question: &Question<'_>, expected: Option<f64>) {
        let found = table().probability(question);
        let close = found.zip(expected).map(|(f, e)| (f - e).abs() < 1e-12);
        assert!(
            close.unwrap_or(found == expected),
            "{found:?}, not {expected:?}, to {question:?}"
        );
    }

    #[test]
    fn the_finest_cell_there_is() {
        // A host that is not known: its state, and half of what all lose.
        is(&question("x", 2, 1), Some(0.65));
        is(&question("x", 2, 2), Some(0.6));
        is(&question("x", 1, 1), Some(0.55));
        let mut old = question("x", 1, 1);
        old.state.age_s = 100_000;
        is(&old, Some(0.5));
        // Not available.
        is(&question("x", 0, 0), None);
    }

    #[test]
    fn half_state_half_habit() {
        // Monday at nine: 0.6 is lost by habit, 0.2 by state.
        is(&question("a", 2, 1), Some(0.6));
        let night = Question {
            hour_of_week: 0,
            ..question("a", 2, 1)
        };
        is(&night, Some(0.7));
    }

    #[test]
    fn a_table_of_another_version_is_not_read() {
        let of = |versions: &[i64]| {
            let size = |&version: &i64| ForecastTableSize::of(version, &[], &[], &[]);
            let findings = Findings {
                forecast_table: vec![cell([None; 3], 3600, 0.5)],
                forecast_table_size: versions.iter().map(size).collect(),
                ..Findings::default()
            };
            let table = Table::of(&findings)?;
            table.probability(&question("x", 2, 1))
        };
        assert_eq!(of(&[TABLE_VERSION]), Some(0.5));
        assert_eq!(of(&[TABLE_VERSION + 1]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn what_the_table_does_not_have() {
        let ask = |ahead_s| Question {
            ahead_s,
            ..question("x", 2, 1)
        };
        is(&ask(601), None);
        is(&ask(1801), Some(0.65));
        is(&ask(3601), None);
        is(&ask(600), Some(0.99));
        is(&ask(100_000), None);
        let idle = Question {
            scope: Scope::Idle,
            ..question("x", 2, 1)
        };
        is(&idle, None);
        // Smaller and larger regions than the only one.
        for bytes in [1, 2 * GIB] {
            let region = Question {
                region: Region::Bytes(bytes),
                ..question("x", 2, 1)
            };
            is(&region, Some(0.65));
        }
        let share = Question {
            region: Region::Millionths(500_000),
            ..question("x", 2, 1)
        };
        is(&share, None);
        assert_eq!(
            Region::of(Some(1), Some(0.5)),
            Some(Region::Millionths(500_000))
        );
        assert_eq!(Region::of(None, None), None);
    }
}
