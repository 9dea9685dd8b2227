//! Files that are larger than memory and hold many machines' rows in any order. Such files are read several times.
//!
//! The first pass counts each machine's rows. Each later pass holds the rows of as many machines as fit in
//! memory, and the machines are then returned one by one. Memory stays bounded, and no temporary files are needed.

use super::{ImportError, Readings, Repairs};
use std::collections::HashMap;
use std::fmt::Display;

/// Maximum number of machines. In a file with more, the column taken for the machine probably holds something else.
const MACHINES: usize = 1_000_000;

/// Files with rows of many machines.
pub(super) trait Table {
    /// Content of a row that is held in memory.
    type Row;

    /// Reads every row of every file, in the same order each time.
    fn scan(&mut self, each: &mut dyn FnMut(GroupedRow<'_, Self::Row>)) -> Result<(), ImportError>;

    /// Name of all files together, for messages.
    fn origin(&self) -> String;
}

/// A row of a table.
pub(super) struct GroupedRow<'l, R> {
    /// Place of the row, for messages.
    pub(super) place: &'l dyn Display,
    /// Machine of the row, or the reason why it is unknown.
    pub(super) machine: Result<&'l str, String>,
    /// Content of the row, or its fault.
    pub(super) row: Result<R, String>,
}

/// Rows of one machine that are in memory.
pub(super) struct MachineRows<R> {
    pub(super) rows: Vec<R>,
    unreadable: Readings<'static>,
}

/// Machines of a table; the rows of some are in memory.
pub(super) struct MachineTable<R> {
    /// Names of the machines, in order, with the number of readable rows of each.
    machines: Vec<(String, usize)>,
    without_machine: Repairs,
    rows_at_once: usize,
    held: HashMap<String, MachineRows<R>>,
}

impl<R> MachineTable<R> {
    /// Lists the machines of `table`. Later, at most `rows_at_once` rows are in memory, or the rows of one
    /// machine if it has more.
    pub(super) fn list(
        table: &mut impl Table<Row = R>,
        rows_at_once: usize,
    ) -> Result<Self, ImportError> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut of_none = Readings::new(&[]);
        let mut is_too_many = false;
        table.scan(&mut |found| match found.machine {
            Ok(machine) => {
                if let Some(count) = counts.get_mut(machine) {
                    *count += usize::from(found.row.is_ok());
                } else if counts.len() < MACHINES {
                    counts.insert(machine.to_owned(), usize::from(found.row.is_ok()));
                } else {
                    is_too_many = true;
                }
            }
            Err(why) => of_none.unreadable(found.place, why),
        })?;
        if is_too_many {
            return Err(ImportError::TooManyMachines {
                origin: table.origin(),
                limit: MACHINES,
            });
        }
        let mut machines: Vec<(String, usize)> = counts.into_iter().collect();
        machines.sort_unstable();
        Ok(Self {
            machines,
            without_machine: of_none.repairs,
            rows_at_once,
            held: HashMap::new(),
        })
    }

    /// Names of the machines, in order.
    pub(super) fn names(&self) -> Vec<String> {
        self.machines.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Counts of the rows whose machine is unknown; only the first call returns them.
    pub(super) fn without_machine(&mut self) -> Repairs {
        std::mem::take(&mut self.without_machine)
    }

    /// Rows of a machine; each machine can be taken once. If they are not in memory, the rows of the next
    /// machines are read together with them.
    pub(super) fn take(
        &mut self,
        table: &mut impl Table<Row = R>,
        machine: &str,
    ) -> Result<Option<MachineRows<R>>, ImportError> {
        if !self.held.contains_key(machine) {
            self.hold_from(table, machine)?;
        }
        Ok(self.held.remove(machine))
    }

    fn hold_from(
        &mut self,
        table: &mut impl Table<Row = R>,
        machine: &str,
    ) -> Result<(), ImportError> {
        self.held.clear();
        let at = self
            .machines
            .partition_point(|(name, _)| name.as_str() < machine);
        let mut room = self.rows_at_once;
        for (name, count) in self.machines.get(at..).unwrap_or_default() {
            if *count > room && !self.held.is_empty() {
                break;
            }
            room = room.saturating_sub(*count);
            let held = MachineRows {
                rows: Vec::with_capacity(*count),
                unreadable: Readings::new(&[]),
            };
            self.held.insert(name.clone(), held);
        }
        let held = &mut self.held;
        table.scan(&mut |found| {
            let Some(held) = found.machine.ok().and_then(|m| held.get_mut(m)) else {
                return;
            };
            match found.row {
                Ok(row) => held.rows.push(row),
                Err(why) => held.unreadable.unreadable(found.place, why),
            }
        })
    }
}

impl<R> MachineRows<R> {
    /// Counts of the machine's unreadable rows; only the first call returns them. They are the initial
    /// repairs of the machine's [`Readings`].
    pub(super) fn repairs(&mut self) -> Repairs {
        std::mem::take(&mut self.unreadable.repairs)
    }
}
