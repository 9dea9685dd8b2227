//! Order of recording: by the number of a row's database, then by the row's sequence number. An agent begins
//! a new database when the old one is damaged, and each database has its own sequence numbers. Times do not
//! give the order, since a clock may be set back.

/// Databases of one host, numbered in the order of their first rows.
#[derive(Debug, Default)]
pub struct Databases {
    ids: Vec<String>,
    last: usize,
}

impl Databases {
    /// Returns the number of a database; an unknown id gets the next number.
    pub fn number(&mut self, id: &str) -> i64 {
        // Rows of one database are mostly adjacent.
        if self.ids.get(self.last).is_none_or(|last| last != id) {
            let known = self.ids.iter().position(|known| known == id);
            self.last = known.unwrap_or_else(|| {
                self.ids.push(id.to_owned());
                self.ids.len() - 1
            });
        }
        self.last as i64
    }
}

/// Returns the row numbers in the order of recording; `None` if the rows are already in that order. `key` is
/// a row's database number and sequence number; for rows of a single database, the sequence number alone.
/// Rows with equal keys keep their order.
#[must_use]
pub fn order<K: Ord>(rows_count: usize, key: impl Fn(usize) -> K) -> Option<Vec<usize>> {
    let is_ordered = (1..rows_count).all(|row| key(row - 1) <= key(row));
    (!is_ordered).then(|| {
        let mut rows: Vec<usize> = (0..rows_count).collect();
        rows.sort_by_key(|&row| key(row));
        rows
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_ordered_by_database_and_sequence() {
        let of = |rows: &[(i64, i64)]| order(rows.len(), |row| rows[row]);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(0, 7), (0, 7), (0, 9), (1, 2)]), None);
        let mingled = [(0, 7), (1, 1), (0, 9), (0, 7), (1, 0)];
        assert_eq!(of(&mingled), Some(vec![0, 3, 2, 4, 1]));
    }

    #[test]
    fn each_database_keeps_the_number_of_its_first_row() {
        let mut databases = Databases::default();
        let numbers = ["b", "b", "a", "b", "", "a"].map(|id| databases.number(id));
        assert_eq!(numbers, [0, 0, 1, 0, 2, 1]);
    }
}
