//! Values by cell of the grid, stored in blocks only where a host was seen: a host with a wrong clock
//! costs one block, not all the years between.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of cells in a block.
const BLOCK_CELLS: i64 = 128;

/// A `T` for each cell; untouched cells are `T::default()`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ByCell<T> {
    blocks: BTreeMap<i64, Vec<T>>,
}

impl<T> Default for ByCell<T> {
    fn default() -> Self {
        Self {
            blocks: BTreeMap::new(),
        }
    }
}

impl<T: Clone + Default> ByCell<T> {
    /// Mutable value of a cell.
    pub(crate) fn at(&mut self, cell: i64) -> &mut T {
        let block = self.blocks.entry(cell.div_euclid(BLOCK_CELLS));
        let block = block.or_insert_with(|| vec![T::default(); BLOCK_CELLS as usize]);
        &mut block[cell.rem_euclid(BLOCK_CELLS) as usize]
    }

    /// Value of a cell; `None` if no cell of its block was written.
    pub(crate) fn get(&self, cell: i64) -> Option<&T> {
        let block = self.blocks.get(&cell.div_euclid(BLOCK_CELLS))?;
        block.get(cell.rem_euclid(BLOCK_CELLS) as usize)
    }

    /// Cells in order, including unwritten ones of stored blocks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &T)> {
        self.blocks.iter().flat_map(|(block, cells)| {
            let first = block * BLOCK_CELLS;
            cells
                .iter()
                .enumerate()
                .map(move |(i, value)| (first + i as i64, value))
        })
    }

    /// Adds the cells of `other` with `add`; a cell missing on one side counts as the default.
    pub(crate) fn merge(&mut self, other: &Self, add: impl Fn(&mut T, &T)) {
        for (&block, theirs) in &other.blocks {
            match self.blocks.get_mut(&block) {
                Some(mine) => mine.iter_mut().zip(theirs).for_each(|(m, t)| add(m, t)),
                None => {
                    self.blocks.insert(block, theirs.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_on_both_sides_of_1970_and_far_apart() {
        let mut some = ByCell::<i64>::default();
        for cell in [-1, 0, 127, 128, 3_000_000] {
            *some.at(cell) += cell;
        }
        let mut other = ByCell::<i64>::default();
        *other.at(-1) += 5;
        *other.at(-200) += 7;
        some.merge(&other, |mine, theirs| *mine += theirs);
        let found: Vec<_> = some.iter().filter(|(_, v)| **v != 0).collect();
        let expected = [
            (-200, &7),
            (-1, &4),
            (127, &127),
            (128, &128),
            (3_000_000, &3_000_000),
        ];
        assert_eq!(found, expected);
        assert_eq!((some.get(-1), some.get(1 << 40)), (Some(&4), None));
    }
}
