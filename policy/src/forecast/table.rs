//! The forecast table, made from the findings, and lookups of its probabilities.

use super::{AHEAD, AHEAD_S, Bins, State, TABLE_VERSION, mixed, slot, spread};
use gleaner_schemas::findings::{Findings, ForecastCell, ForecastHabit, ForecastWeight, Scope};
use std::collections::BTreeMap;

/// A region that the table contains: by size, or by share of physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    /// Size in bytes.
    Bytes(i64),
    /// Size in millionths of physical memory.
    Millionths(i64),
}

/// A requested forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question<'a> {
    /// Host id; a host that is not in the table counts as all hosts together.
    pub host: &'a str,
    /// Scope of the forecast. With `Idle`, the host, which is idle now, must also stay idle.
    pub scope: Scope,
    /// Requested region. A size in bytes is rounded up to the next size in the table; above the largest size,
    /// the largest applies.
    pub region: Region,
    /// State of the region now.
    pub state: State,
    /// Hour of the week in the fleet's time zone: 0 is Monday's first.
    pub hour_of_week: u8,
    /// Requested time ahead; between two horizons of the table, the longer one applies.
    pub ahead_s: i64,
}

/// Probabilities by horizon, in units of 10⁻⁹; [`ABSENT`] if there is none for a horizon.
///
/// A host has a few hundred of these for all regions: they take 36 bytes each, where `[Option<f64>; AHEAD]`
/// would take 144. Findings have five digits, so no precision is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProbabilitiesAhead([u32; AHEAD]);

const ABSENT: u32 = u32::MAX;
const UNITS: f64 = 1e9;

/// Table of all probabilities.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    regions: BTreeMap<(bool, Region), RegionTable>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct RegionTable {
    /// Probability that a region is lost, by state; an absent bin stands for all bins.
    cells: BTreeMap<[Option<u8>; 3], ProbabilitiesAhead>,
    hosts: BTreeMap<String, HostTable>,
    habit_weights: ProbabilitiesAhead,
    spreads: [Option<Spread>; AHEAD],
}

/// Probabilities that a region on one host is lost.
#[derive(Clone, Debug, Default, PartialEq)]
struct HostTable {
    /// Probabilities by time of the week; `None` stands for any time.
    habits: BTreeMap<Option<u8>, ProbabilitiesAhead>,
    /// Probabilities by state.
    cells: BTreeMap<Bins, ProbabilitiesAhead>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    about: f64,
    by: f64,
}

impl Default for ProbabilitiesAhead {
    fn default() -> Self {
        Self([ABSENT; AHEAD])
    }
}

impl ProbabilitiesAhead {
    fn of(probabilities: [Option<f64>; AHEAD]) -> Self {
        let mut ahead = Self::default();
        for (at, probability) in probabilities.into_iter().enumerate() {
            ahead.set(at, probability);
        }
        ahead
    }

    fn set(&mut self, ahead: usize, probability: Option<f64>) {
        let units = |p: f64| (p.clamp(0.0, 1.0) * UNITS).round() as u32;
        self.0[ahead] = probability.filter(|p| !p.is_nan()).map_or(ABSENT, units);
    }

    fn get(&self, ahead: usize) -> Option<f64> {
        let units = self.0[ahead];
        (units != ABSENT).then(|| f64::from(units) / UNITS)
    }
}

impl Region {
    /// Region of a record; `None` if the record has none.
    #[must_use]
    pub fn of(region_bytes: Option<i64>, region_share: Option<f64>) -> Option<Self> {
        let millionths = |share: f64| Self::Millionths((share * 1e6).round() as i64);
        region_share
            .map(millionths)
            .or(region_bytes.map(Self::Bytes))
    }
}

impl Table {
    /// Table of an analysis; `None` if it has none, or one of another version.
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

    /// Table from the findings' three lists. Records without a region, or with an unknown horizon, are left
    /// out.
    #[must_use]
    pub fn new(
        cells: &[ForecastCell],
        habits: &[ForecastHabit],
        weights: &[ForecastWeight],
    ) -> Self {
        let mut table = Self::default();
        let bin = |bin: Option<i64>| bin.and_then(|b| u8::try_from(b).ok());
        for cell in cells {
            let bins = [bin(cell.age_bin), bin(cell.margin_bin), bin(cell.low_bin)];
            let region = table.region(cell.scope, cell.region_bytes, cell.region_share);
            if let (Some(region), Some(ahead)) = (region, ahead_index(cell.ahead_s)) {
                let lost = Some(1.0 - cell.probability);
                region.cells.entry(bins).or_default().set(ahead, lost);
            }
        }
        for habit in habits {
            let region = table.region(habit.scope, habit.region_bytes, habit.region_share);
            if let Some(region) = region {
                let of_host = region.hosts.entry(habit.host_id.clone()).or_default();
                match [habit.age_bin, habit.margin_bin, habit.low_bin].map(bin) {
                    [Some(age), Some(margin), Some(low)] => {
                        let bins = Bins { age, margin, low };
                        of_host
                            .cells
                            .insert(bins, ProbabilitiesAhead::of(habit.lost()));
                    }
                    _ => {
                        let lost = ProbabilitiesAhead::of(habit.lost());
                        of_host.habits.insert(bin(habit.slot), lost);
                    }
                }
            }
        }
        for weight in weights {
            let region = table.region(weight.scope, weight.region_bytes, weight.region_share);
            if let (Some(region), Some(ahead)) = (region, ahead_index(weight.ahead_s)) {
                let habit_weight = Some(weight.habit_weight);
                region.habit_weights.set(ahead, habit_weight);
                let spread = weight.spread_about.zip(weight.spread);
                region.spreads[ahead] = spread.map(|(about, by)| Spread { about, by });
            }
        }
        table
    }

    fn region(
        &mut self,
        scope: Scope,
        region_bytes: Option<i64>,
        region_share: Option<f64>,
    ) -> Option<&mut RegionTable> {
        let key = (
            scope == Scope::Idle,
            Region::of(region_bytes, region_share)?,
        );
        Some(self.regions.entry(key).or_default())
    }

    /// Probability that a region stays available throughout the horizon; `None` if the region is not
    /// available now, or if nothing was learnt about similar regions.
    #[must_use]
    pub fn probability(&self, question: &Question<'_>) -> Option<f64> {
        let ahead = AHEAD_S.iter().position(|s| *s >= question.ahead_s)?;
        let bins = question.state.bins()?;
        let region = self.nearest(question.scope, question.region)?;
        let of_host = region.hosts.get(question.host);
        let of_cell = of_host.and_then(|host| host.cells.get(&bins)?.get(ahead));
        let state = of_cell.or_else(|| region.state(bins, ahead))?;
        let habit = region.habit(of_host, slot(question.hour_of_week), ahead);
        let lost = match (habit, region.habit_weights.get(ahead)) {
            (Some(habit), Some(weight)) => mixed(habit, state, weight),
            _ => state,
        };
        let lost = match region.spreads[ahead] {
            Some(Spread { about, by }) => spread(lost, about, by),
            None => lost,
        };
        Some(1.0 - lost)
    }

    fn nearest(&self, scope: Scope, region: Region) -> Option<&RegionTable> {
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

impl RegionTable {
    /// Probability that a region is lost, by the finest state that the table has for all hosts.
    fn state(&self, bins: Bins, ahead: usize) -> Option<f64> {
        let (age, margin, low) = (Some(bins.age), Some(bins.margin), Some(bins.low));
        let finest_first = [
            [age, margin, low],
            [age, margin, None],
            [age, None, None],
            [None; 3],
        ];
        let mut found = finest_first.iter().filter_map(|key| self.cells.get(key));
        found.find_map(|cell| cell.get(ahead))
    }

    /// Probability by the host's habit at the time of the week, otherwise at any time. A host without habits
    /// has the probability of all hosts.
    fn habit(&self, host: Option<&HostTable>, slot: u8, ahead: usize) -> Option<f64> {
        let at = |slot| host?.habits.get(&slot)?.get(ahead);
        let of_all = || self.cells.get(&[None; 3])?.get(ahead);
        at(Some(slot)).or_else(|| at(None)).or_else(of_all)
    }
}

/// Index of a horizon in [`AHEAD_S`].
fn ahead_index(ahead_s: i64) -> Option<usize> {
    AHEAD_S.iter().position(|s| *s == ahead_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::findings::ForecastTableSize;
    use proptest::prelude::*;

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
            instants_count: 1,
        }
    }

    fn habit(host: &str, slot: Option<i64>, hour: f64) -> ForecastHabit {
        ForecastHabit {
            host_id: host.into(),
            slot,
            region_bytes: Some(GIB),
            lost_in_1_h: Some(hour),
            ..ForecastHabit::default()
        }
    }

    fn records() -> (Vec<ForecastCell>, Vec<ForecastHabit>, ForecastWeight) {
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
            spread_about: None,
            spread: None,
        };
        (cells.to_vec(), habits.to_vec(), weight)
    }

    fn table() -> Table {
        let (cells, habits, weight) = records();
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
        // A host that is not in the table: half of the forecast comes from its state, half from all hosts'
        // share.
        is(&question("x", 2, 1), Some(0.65));
        is(&question("x", 2, 2), Some(0.6));
        is(&question("x", 1, 1), Some(0.55));
        let mut old = question("x", 1, 1);
        old.state.age_s = 100_000;
        is(&old, Some(0.5));
        // The region is not available.
        is(&question("x", 0, 0), None);
    }

    #[test]
    fn half_state_half_habit() {
        // Monday at nine: by habit 0.6 is lost, by state 0.2. The mean is 0.4, so 0.6 stays.
        is(&question("a", 2, 1), Some(0.6));
        let night = Question {
            hour_of_week: 0,
            ..question("a", 2, 1)
        };
        is(&night, Some(0.7));
    }

    /// Record of one state on one host.
    fn of_state(host: &str, bins: [i64; 3], hour: f64) -> ForecastHabit {
        ForecastHabit {
            age_bin: Some(bins[0]),
            margin_bin: Some(bins[1]),
            low_bin: Some(bins[2]),
            ..habit(host, None, hour)
        }
    }

    #[test]
    fn a_host_s_own_state_and_spread_odds_worked_by_hand() {
        let (cells, mut habits, mut weight) = records();
        habits.push(of_state("a", [0, 4, 2], 0.4));
        let probability = |weight: &ForecastWeight, host| {
            let table = Table::new(&cells, &habits, std::slice::from_ref(weight));
            table.probability(&question(host, 2, 1)).unwrap()
        };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a}, not {b}");
        // In that state, host a loses 0.4 (all hosts 0.2), and at that time of the week 0.6: the mean is 0.5.
        close(probability(&weight, "a"), 0.5);
        // Host b has no shares of its own: all hosts lose 0.2 in the state, and 0.5 over all states.
        close(probability(&weight, "b"), 0.65);
        // The odds of losing are 1, while `spread_about` has odds of 1/4: twice the log-odds makes them 4, so
        // 1 in 5 stays. If `spread_about` has even odds, host a's even odds do not move.
        (weight.spread_about, weight.spread) = (Some(0.2), Some(2.0));
        close(probability(&weight, "a"), 0.2);
        weight.spread_about = Some(0.5);
        close(probability(&weight, "a"), 0.5);
        // Host b's odds of losing are 7/13, spread about even odds.
        close(probability(&weight, "b"), 169.0 / 218.0);
        // A weight record without a spread leaves the mixture unspread.
        weight.spread = None;
        close(probability(&weight, "b"), 0.65);
    }

    proptest! {
        /// Any records, in any order, give a probability. All hosts that are not in the table are alike. A
        /// host with the same shares as all hosts is like them.
        #[test]
        fn tables_of_any_records(
            odds in prop::collection::vec((0..4i64, 0..6i64, 0..6i64, 0.0..=1.0f64), 1..20),
            own in prop::collection::vec((0..3u8, 0..4i64, 0..6i64, 0..6i64, 0.0..=1.0f64), 0..20),
            (any, habit_weight, about, by) in (0.0..=1.0f64, 0.0..=1.0f64, 0.0..=1.0f64, 0.5..2.0f64),
        ) {
            let mut cells = vec![cell([None; 3], 3600, 1.0 - any)];
            let mut known = std::collections::BTreeMap::new();
            for &(age, margin, low, p) in &odds {
                known.entry([age, margin, low]).or_insert(p);
            }
            cells.extend(known.iter().map(|(bins, p)| cell(bins.map(Some), 3600, *p)));
            let mut of_hosts = std::collections::BTreeMap::new();
            for &(host, age, margin, low, p) in &own {
                of_hosts.entry((host, [age, margin, low])).or_insert(p);
            }
            let mut habits: Vec<ForecastHabit> = of_hosts.iter()
                .map(|((host, bins), p)| of_state(&format!("h{host}"), *bins, *p))
                .collect();
            // Host s has a record for each state, with all hosts' shares.
            habits.extend(known.iter().map(|(bins, p)| of_state("s", *bins, 1.0 - *p)));
            let weight = ForecastWeight {
                habit_weight,
                spread_about: Some(about),
                spread: Some(by),
                ..records().2
            };
            let table = Table::new(&cells, &habits, std::slice::from_ref(&weight));
            habits.reverse();
            cells.reverse();
            prop_assert!(table == Table::new(&cells, &habits, &[weight]));
            for available_gib in 1..5 {
                for low_gib in 0..3 {
                    let ask = |host| table.probability(&question(host, available_gib, low_gib)).unwrap();
                    for host in ["h0", "h1", "h2"] {
                        prop_assert!((0.0..=1.0).contains(&ask(host)));
                    }
                    prop_assert_eq!(ask("x"), ask("y"));
                    prop_assert!((ask("s") - ask("x")).abs() < 1e-12);
                }
            }
        }
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
        // Regions smaller and larger than the table's only one.
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
