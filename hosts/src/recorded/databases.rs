//! Numbers of a host's databases. An agent begins another database when one is damaged; sequences count within one.
//!
//! The order of recording is by the database's number, then by sequence. Times do not give it: a clock may be set back.

/// Databases of one host, numbered in the order in which they were met.
#[derive(Debug, Default)]
pub struct Databases {
    ids: Vec<String>,
    last: usize,
}

impl Databases {
    /// Returns the number of a database, a new one for an id that was not met before.
    pub fn number(&mut self, id: &str) -> i64 {
        // Rows of one database mostly stand together.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_database_keeps_the_number_of_its_first_row() {
        let mut databases = Databases::default();
        let numbers = ["b", "b", "a", "b", "", "a"].map(|id| databases.number(id));
        assert_eq!(numbers, [0, 0, 1, 0, 2, 1]);
    }
}
