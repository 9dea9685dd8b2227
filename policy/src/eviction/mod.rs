//! Which page leaves when there is no room for another.
//!
//! Who keeps pages looks for the [`Eviction::victim`] until there is room, lets it [`leave`](Eviction::leave), and has the newcomer
//! [`enter`](Eviction::enter); a page that is asked for and there was [`used`](Eviction::used).

mod fifo;
mod first_in;
mod lru;
mod policy;

pub use fifo::Fifo;
pub use first_in::FirstIn;
pub use lru::Lru;
pub use policy::{Policy, UnknownPolicy};

/// An order in which pages leave.
pub trait Eviction {
    /// For pages below `pages`, none of which is in it; at most 2³² − 2.
    fn of(pages: u32) -> Self;

    /// Pages below `pages` may enter from now on; those that are in stay.
    fn grow(&mut self, pages: u32);

    /// Whether it is in.
    fn contains(&self, page: u32) -> bool;

    /// It is in from now on. One that is in already, or beyond the end, changes nothing.
    fn enter(&mut self, page: u32);

    /// It was asked for, and was in.
    fn used(&mut self, page: u32);

    /// Who leaves next; nobody: the newcomer stays out.
    fn victim(&self) -> Option<u32>;

    /// It is in no longer.
    fn leave(&mut self, page: u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages asked for, one after the other, of a cache of two: `h` where it was in, `m` where it was not.
    fn asked<E: Eviction>(pages: &[u32]) -> String {
        let mut order = E::of(8);
        let mut len = 0;
        let ask = |page: &u32| {
            if order.contains(*page) {
                order.used(*page);
                return 'h';
            }
            if len == 2 {
                match order.victim() {
                    Some(victim) => order.leave(victim),
                    None => return 'm',
                }
            } else {
                len += 1;
            }
            order.enter(*page);
            'm'
        };
        pages.iter().map(ask).collect()
    }

    #[test]
    fn each_order_on_one_table_worked_by_hand() {
        // After 1 2 1, page 3 has no room. Lru: 2 goes. Fifo: 1 goes, though it was used last. FirstIn: 3 stays out.
        let pages = [1, 2, 1, 3, 1, 2, 3, 1];
        assert_eq!(asked::<Lru>(&pages), "mmhmhmmm");
        assert_eq!(asked::<Fifo>(&pages), "mmhmmmmm");
        assert_eq!(asked::<FirstIn>(&pages), "mmhmhhmh");
        // A scan of more than there is room for: the study's reason for "first in".
        let scans = [1, 2, 3, 1, 2, 3, 1, 2, 3];
        assert_eq!(asked::<Lru>(&scans), "mmmmmmmmm");
        assert_eq!(asked::<Fifo>(&scans), "mmmmmmmmm");
        assert_eq!(asked::<FirstIn>(&scans), "mmmhhmhhm");
    }
}
