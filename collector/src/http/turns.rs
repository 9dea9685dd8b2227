//! Admits one batch per host at a time, so that no host uses the others' memory.

use super::permissions::Writer;
use gleaner_daemon::listen::Caller;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of simultaneous batches from programs of this machine.
const LOCAL_TURNS: usize = 64;

/// Senders that have batches in progress, with the number of these batches.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<Mutex<HashMap<String, usize>>>);

/// Turn of one sender, held until dropped.
pub(super) struct Turn {
    turns: Turns,
    name: String,
}

impl Turns {
    pub(super) fn take(&self, writer: &Writer, caller: &Caller) -> Option<Turn> {
        let most = match writer {
            Writer::Local => LOCAL_TURNS,
            Writer::Host(_) | Writer::Named(_) => 1,
        };
        let name = caller.name();
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(name.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        let turns = self.clone();
        Some(Turn { turns, name })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut taken = self.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.name);
            }
        }
    }
}
