//! Numbers objects densely, in the order of their first requests.
//!
//! A stream names objects by any 64 bits; policies and caches keep them in flat arrays by number. The table
//! uses open addressing with linear probing. Most look-ups read a single cache line, which is what limits a
//! replay's speed.

/// The numbers of a stream's objects.
#[derive(Clone, Debug)]
pub struct Objects {
    /// Slots of the table, a power of two; at most five in eight are used.
    slots: Vec<Slot>,
    len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    object: u64,
    number: u32,
}

/// A slot without an object.
const FREE: Slot = Slot {
    object: 0,
    number: u32::MAX,
};
/// Maximum number of objects. The eviction orders of `policy` reserve the two highest numbers.
const MOST: u32 = u32::MAX - 1;

impl Default for Objects {
    fn default() -> Self {
        Self {
            slots: vec![FREE; 1 << 4],
            len: 0,
        }
    }
}

impl Objects {
    /// Number of objects, which have the numbers from 0 on.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns true if there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of the object. A new object gets the next number, or `None` if 2³² − 2 others have numbers.
    #[inline]
    pub fn number(&mut self, object: u64) -> Option<u32> {
        let at = self.place(object);
        match self.slots[at].number {
            u32::MAX => self.take(at, object),
            number => Some(number),
        }
    }

    /// Number of the object, if it has one.
    #[must_use]
    pub fn get(&self, object: u64) -> Option<u32> {
        let number = self.slots[self.place(object)].number;
        (number != u32::MAX).then_some(number)
    }

    /// All objects with their numbers, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        let used = self.slots.iter().filter(|slot| slot.number != u32::MAX);
        used.map(|slot| (slot.object, slot.number))
    }

    /// Appends the numbers of `objects` to `numbers`, in order. Returns false if no numbers are left;
    /// `numbers` then ends there. The memory accesses of several look-ups overlap, which is faster than
    /// calling [`Objects::number`] for each object.
    pub fn number_all(&mut self, objects: &[u64], numbers: &mut Vec<u32>) -> bool {
        const AT_ONCE: usize = 64;
        for objects in objects.chunks(AT_ONCE) {
            let mask = self.slots.len() - 1;
            let mut looked = [FREE; AT_ONCE];
            for (slot, object) in looked.iter_mut().zip(objects) {
                *slot = self.slots[hash(*object) as usize & mask];
            }
            for (slot, object) in looked.iter().zip(objects) {
                let number = if slot.object == *object && slot.number != u32::MAX {
                    Some(slot.number)
                } else {
                    self.number(*object)
                };
                match number {
                    Some(number) => numbers.push(number),
                    None => return false,
                }
            }
        }
        true
    }

    /// Index of the slot that contains the object, or that is free for it.
    #[inline]
    fn place(&self, object: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash(object) as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.object == object || slot.number == u32::MAX {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn take(&mut self, at: usize, object: u64) -> Option<u32> {
        let number = self.len;
        if number == MOST {
            return None;
        }
        self.slots[at] = Slot { object, number };
        self.len += 1;
        if self.len as usize * 8 > self.slots.len() * 5 {
            let slots = vec![FREE; self.slots.len() * 2];
            for slot in std::mem::replace(&mut self.slots, slots) {
                if slot.number != u32::MAX {
                    let at = self.place(slot.object);
                    self.slots[at] = slot;
                }
            }
        }
        Some(number)
    }
}

/// Hashes an object with both halves of a product, so that every bit of the object influences the low bits.
#[inline]
fn hash(object: u64) -> u64 {
    let product = u128::from(object ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn numbers_are_those_of_a_map(objects in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..40], 0..300)) {
            let mut map: HashMap<u64, u32> = HashMap::new();
            let number = |object: &u64| {
                let next = map.len() as u32;
                *map.entry(*object).or_insert(next)
            };
            let expected: Vec<u32> = objects.iter().map(number).collect();
            let mut one_by_one = Objects::default();
            let numbers: Vec<u32> = objects.iter().map(|object| one_by_one.number(*object).unwrap()).collect();
            prop_assert_eq!(&numbers, &expected);
            prop_assert_eq!(one_by_one.len() as usize, map.len());
            prop_assert_eq!(one_by_one.iter().collect::<HashMap<u64, u32>>(), map.clone());
            for object in objects.iter().flat_map(|object| [*object, object.wrapping_add(1)]) {
                prop_assert_eq!(one_by_one.get(object), map.get(&object).copied());
            }
            let (mut together, mut numbers) = (Objects::default(), Vec::new());
            prop_assert!(together.number_all(&objects, &mut numbers));
            prop_assert_eq!(numbers, expected);
        }
    }

    #[test]
    fn ids_in_a_row_and_far_apart_stay_near_their_place() {
        for step in [1, 512, 1 << 20, 1 << 44] {
            let mut numbers = Objects::default();
            for object in 0..40_000_u64 {
                numbers.number(object.wrapping_mul(step));
            }
            let mask = numbers.slots.len() - 1;
            let taken = numbers.slots.iter().enumerate();
            let taken = taken.filter(|(_, slot)| slot.number != u32::MAX);
            let far = taken
                .map(|(at, slot)| at.wrapping_sub(hash(slot.object) as usize) & mask)
                .max();
            assert!(far < Some(120), "{step}: {far:?}");
        }
    }
}
